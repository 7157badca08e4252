# SPDX-License-Identifier: Apache-2.0
"""A JSON file of more than 2 GB opens like a small one, with little memory, and errors name the location of damage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_annotations
import pytest

_BLANKS = 2200  # MiB
_MOST_KB = 300_000  # bytes of memory: some 100 MB are those of the interpreter and the libraries

_OPENED = """
import json, resource, sys
import feedline
dataset = feedline.open(sys.argv[1], fields=("boxes", "labels")).collate("list")
samples = [[one.tolist() for one in dataset[i]] for i in range(len(dataset) - 1)]
try:
    dataset[len(dataset) - 1]
except feedline.DataError as error:
    named = [error.shard, error.record, error.offset]
print(json.dumps([samples, named, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def read_apart(path: Path) -> Any:
    """In a separate process: returns all samples but the last, the location of damage in the last one, and the memory
    that was used, in KB.
    """
    command = [sys.executable, "-c", _OPENED, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_a_json_of_two_gigabytes(tmp_path: Path, long_form: bool) -> None:
    if not long_form:
        pytest.skip("writes 2 GB: tools/test --proofs")
    path = made_annotations.coco(tmp_path / "set", 9)
    bad = made_annotations.coco_annotation(99, 1008, ("cow", (0, 0, 9, 9)), bbox=[1, 2, 3])
    text = made_annotations.change(path, add_annotations=[bad]).read_bytes()
    wanted = read_apart(path)[0]
    with path.open("wb") as file:
        file.write(b'{"info": [')
        for _ in range(_BLANKS):
            file.write(b" " * (1 << 20))
        file.write(b"], " + text[1:].replace(b'"info"', b'"more"'))
    samples, (shard, record, offset), peak_kb = read_apart(path)
    assert samples == wanted
    assert (shard, record) == (str(path), 8)
    assert offset > 2**31
    with path.open("rb") as file:
        file.seek(offset)
        assert file.read(9) == b'{"id": 99'
    assert peak_kb < _MOST_KB
