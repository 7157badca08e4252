# SPDX-License-Identifier: Apache-2.0
"""Prints the entries of the LMDB file in argv[1], as liblmdb reads them: key, and value in hexadecimal, in order."""

import json
import sys

import lmdb

with lmdb.open(sys.argv[1], subdir=False, readonly=True, lock=False) as environment, environment.begin() as transaction:
    entries = [[bytes(key).decode(), bytes(value).hex()] for key, value in transaction.cursor()]
    assert transaction.stat()["entries"] == len(entries)
print(json.dumps(entries))
