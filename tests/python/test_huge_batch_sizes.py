# SPDX-License-Identifier: Apache-2.0
"""A batch size far above the number of samples needs only the memory of these samples."""

import resource
import subprocess
import sys

import numpy as np
import pytest

import feedline

LIMIT_MIB = 4096  # bytes of address space: far more than samples and libraries need, far less than 10**9 rows
READ = """
import resource, sys, feedline, numpy as np
limit = int(sys.argv[2]) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
texts = feedline.open(sys.argv[1], fields=("text:text", "label:value"))
sources = {
    "texts": texts,
    "numbers": feedline.arrays(x=np.arange(10)),
    "ragged": feedline.arrays(x=feedline.ragged([[1], [1, 2]] * 5)),
}
for name, source in sources.items():
    for options in ({}, {"world_size": 2, "rank": 1}, {"shuffle": True}, {"drop_last": True}):
        rows = [len(batch[0]) for batch in source.loader(10**9, output="numpy", num_workers=2, **options)]
        wanted = [] if "drop_last" in options else [5] if "rank" in options else [10]
        assert rows == wanted, (name, options, rows)
"""


def test_a_batch_of_all_samples_takes_their_memory(tmp_path):
    (tmp_path / "rows.csv").write_text("text,label\n" + "".join(f"text {i},{i}\n" for i in range(10)))
    command = [sys.executable, "-W", "ignore", "-c", READ, str(tmp_path / "rows.csv"), str(LIMIT_MIB)]
    subprocess.run(command, check=True, timeout=120)


def test_images_of_any_size(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    for k in range(4):
        image.new("RGB", (8 + k, 8)).save(tmp_path / "a" / f"{k}.png")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batches = list(feedline.open(tmp_path).collate("list").loader(10**9, output="numpy"))
    assert [len(batch.image) for batch in batches] == [4]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_a_batch_that_no_numbering_holds_is_refused_by_name():
    data = feedline.arrays(x=np.arange(10))
    for options in ({"batch_size": 2**62}, {"batch_size": 2**48, "world_size": 2, "rank": 0}):
        with pytest.raises(feedline.ConfigError, match="batch_size"):
            data.loader(output="numpy", **options)
