# SPDX-License-Identifier: Apache-2.0
"""Samples that need no file are read with all kinds of loader options."""

import json

import pytest

import feedline

ROWS = 10
FIELDS = ("text:text", "label:value")


@pytest.fixture(params=["jsonl", "csv"])
def table(request, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    if request.param == "jsonl":
        path.write_text("".join(json.dumps({"text": f"text {i}", "label": i}) + "\n" for i in range(ROWS)))
    else:
        path.write_text("text,label\n" + "".join(f"text {i},{i}\n" for i in range(ROWS)))
    return feedline.open(path, fields=FIELDS)


def rows_of(loader):
    return [(int(label), text) for batch in loader for text, label in zip(batch.text, batch.label, strict=True)]


WANTED = [(i, f"text {i}") for i in range(ROWS)]


@pytest.mark.parametrize("mode", ["auto", "always", "threads", "never"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_has_each_row_once_whatever_reads_ahead(table, mode, shuffle, force):
    force(read_ahead=mode)
    for batch_size in (1, 3, ROWS, 10 * ROWS):
        loader = table.loader(batch_size, output="numpy", shuffle=shuffle)
        for _ in range(2):
            rows = rows_of(loader)
            assert (sorted(rows) if shuffle else rows) == WANTED


def test_ranks_share_the_rows(table):
    rows = [row for rank in range(2) for row in rows_of(table.loader(2, rank=rank, world_size=2, output="numpy"))]
    assert sorted(rows) == WANTED


def test_a_state_resumes_at_the_next_row(table):
    loader = table.loader(3, output="numpy")
    iterator = iter(loader)
    first = [next(iterator), next(iterator)]
    other = table.loader(3, output="numpy")
    other.load_state_dict(loader.state_dict())
    assert rows_of(first) + rows_of(other) == WANTED


def test_parts_mixtures_and_functions_read_them(table):
    assert rows_of(table.subset([3, 1]).loader(2, output="numpy")) == [WANTED[3], WANTED[1]]
    mixed = rows_of(feedline.mix([table, table]).loader(4, output="numpy"))
    assert set(mixed) <= set(WANTED)
    assert mixed
    doubled = table.map(lambda label: label * 2, "label").loader(4, output="numpy")
    assert sorted(int(label) for batch in doubled for label in batch.label) == [2 * i for i in range(ROWS)]
