# SPDX-License-Identifier: Apache-2.0
"""Writes databases with liblmdb, in all of its modes, and prints what liblmdb reads back. Run by its own
interpreter.
"""

import json
import random
import sys
import zlib
from pathlib import Path

import lmdb

root, draw = Path(sys.argv[1]), random.Random(7)
SIZES = (0, 1, 3, 100, 1000, 2010, 2020, 2030, 2040, 4070, 4096, 9000, 70000)


def value():
    return draw.randbytes(draw.choice(SIZES))


def read(path, name=None, **options):
    with lmdb.open(str(path), readonly=True, lock=False, max_dbs=4, **options) as environment:
        database = environment.open_db(name, create=False) if name else None
        with environment.begin(db=database) as transaction:
            return [[key.hex(), len(value), zlib.crc32(value)] for key, value in transaction.cursor()]


wanted = {}


def write(name, fill, database=None, subdir=True, **options):
    path = root / name
    with lmdb.open(str(path), map_size=1 << 28, subdir=subdir, max_dbs=4, **options) as environment:
        fill(environment)
    wanted[name] = read(path, database, subdir=subdir)


def put_all(environment, count=700, database=None):
    with environment.begin(write=True, db=database) as transaction:
        for i in range(count):
            transaction.put(b"%05d" % i, value())


def churn(environment):
    """Many transactions that write, replace and delete, so that pages are reused in a different order."""
    keys = [draw.randbytes(draw.randrange(1, 60)) for _ in range(400)]
    for _ in range(60):
        with environment.begin(write=True) as transaction:
            for key in draw.sample(keys, 30):
                if draw.random() < 0.4:
                    transaction.delete(key)
                else:
                    transaction.put(key, value())


def named(environment):
    put_all(environment, database=environment.open_db(b"images"))


def numbers(environment):
    database = environment.open_db(b"numbers", integerkey=True)
    with environment.begin(write=True, db=database) as transaction:
        for i in draw.sample(range(1 << 20), 300):
            transaction.put(i.to_bytes(8, "little"), value())


def reversed_keys(environment):
    database = environment.open_db(b"reversed", reverse_key=True)
    with environment.begin(write=True, db=database) as transaction:
        for _ in range(300):
            transaction.put(draw.randbytes(8), value())


def long_keys(environment):
    with environment.begin(write=True) as transaction:
        for _ in range(100):
            transaction.put(draw.randbytes(511), value())


def append(environment):
    with environment.begin(write=True) as transaction:
        for i in range(2000):
            transaction.put(b"%08d" % i, b"x" * (i % 50 + 1), append=True)


write("put", put_all)
write("file.lmdb", put_all, subdir=False)
write("churned", churn)
write("named", named, database=b"images")
write("append", append)
write("mapped", put_all, writemap=True, map_async=True)
write("empty_transactions", lambda e: [put_all(e, n) for n in (10, 5, 0, 3)])
write("long_keys", long_keys)
write("numbers", numbers, database=b"numbers")
write("reversed", reversed_keys, database=b"reversed")
with lmdb.open(str(root / "churned"), readonly=True, lock=False) as environment:
    (root / "compact").mkdir()
    environment.copy(str(root / "compact"), compact=True)
wanted["compact"] = wanted["churned"]
with lmdb.open(str(root / "duplicates"), map_size=1 << 24, max_dbs=2) as environment:
    database = environment.open_db(b"many", dupsort=True)
    with environment.begin(write=True, db=database) as transaction:
        transaction.put(b"a", b"1")
        transaction.put(b"a", b"2")
with lmdb.open(str(root / "several"), map_size=1 << 24, max_dbs=4) as environment:
    for name in (b"left", b"right"):
        put_all(environment, 3, environment.open_db(name))
print(json.dumps(wanted))
