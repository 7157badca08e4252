# SPDX-License-Identifier: Apache-2.0
"""Documents of token files: datatrove's with their loss masks, and raw files with a separator, such as OLMo-core's."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from packed_runs import rows_of

import feedline

DOCUMENTS = [[5, 6, 7], [], [8], [9, 10, 11, 12]]


def write(path: Path, documents: list[list[int]], dtype: str = "uint16", mask: list[int] | None = None) -> Path:
    tokens = [token for document in documents for token in document]
    path.write_bytes(np.asarray(tokens, dtype).tobytes())
    ends = np.cumsum([len(document) for document in documents], dtype="<u8")
    Path(f"{path}.index").write_bytes(ends.tobytes())
    if mask is not None:
        Path(f"{path}.loss").write_bytes(np.asarray(mask, bool).tobytes())
    return path


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_documents(tmp_path: Path, dtype: str) -> None:
    dataset = feedline.open(write(tmp_path / "a.ds", DOCUMENTS, dtype))
    assert dataset.format == "datatrove"
    assert [dataset[i].input_ids.tolist() for i in range(4)] == DOCUMENTS
    assert dataset[0].input_ids.dtype == np.int64
    assert pickle.loads(pickle.dumps(dataset))[3].input_ids.tolist() == DOCUMENTS[3]
    with dataset.loader(2, output="numpy") as loader:
        first, second = list(loader)
    assert first.input_ids.tolist() == [[5, 6, 7], [0, 0, 0]]
    assert second.input_ids_length.tolist() == [1, 4]
    report = feedline.inspect(tmp_path / "a.ds")
    assert (report.format, report.samples, [finding.code for finding in report.findings]) == (
        "datatrove",
        4,
        ["empty_document"],
    )


def test_packs_apply_the_loss_mask(tmp_path: Path) -> None:
    write(tmp_path / "a.ds", DOCUMENTS, mask=[1, 0, 1, 1, 0, 1, 0, 1])
    write(tmp_path / "b.ds", [[13, 14]], "uint32", mask=[1, 1])
    dataset = feedline.open(str(tmp_path / "*.ds"))
    masked = {6, 9, 11}
    with dataset.pack_sequences(8, pad=0).loader(1, output="numpy") as loader:
        rows = [
            row
            for batch in loader
            for row in rows_of(batch, labels_of=lambda p: [-100, *(-100 if t in masked else t for t in p[1:])])
        ]
    assert sorted(piece for row in rows for piece in row) == [(5, 6, 7), (8,), (9, 10, 11, 12), (13, 14)]


def test_a_missing_index(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ds", DOCUMENTS)
    Path(f"{path}.index").unlink()
    with pytest.raises(feedline.StorageError, match=r"a\.ds\.index"):
        feedline.open(path)


@pytest.mark.parametrize("name", ["a.npy", "a.bin"])
@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_documents_that_a_separator_ends(tmp_path: Path, name: str, dtype: str) -> None:
    documents = [[5, 6, 0], [0], [7, 0], [8, 9]]  # the end of a file ends a document
    for path, part in ((tmp_path / name, documents), (tmp_path / f"b{name}", [[1, 0]])):
        path.write_bytes(np.concatenate([np.asarray(document, dtype) for document in part]).tobytes())
    paths = [tmp_path / name, tmp_path / f"b{name}"]
    dataset = feedline.tokens(paths, dtype=dtype, separator=0, documents="whole")
    assert [dataset[i].input_ids.tolist() for i in range(len(dataset))] == [*documents, [1, 0]]
    with dataset.pack_sequences(16).loader(1, output="numpy") as loader:
        ((row,),) = [rows_of(batch) for batch in loader]
    assert sorted(row) == sorted(map(tuple, [*documents, [1, 0]]))
    assert pickle.loads(pickle.dumps(dataset))[2].input_ids.tolist() == [7, 0]


def test_refusals_of_whole_documents(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    np.array([1, 2, 0, 3], "uint16").tofile(path)
    for options, text in [
        ({"separator": 0, "documents": "whole", "window": 4}, 'documents="whole" has no window; omit window=4'),
        ({"separator": 0, "documents": "whole", "output_dtype": "int32"}, "whole documents are int64"),
        ({"separator": 0, "documents": "whole", "pad": 1}, 'require documents="apart", not "whole"'),
        ({"separator": 9, "documents": "whole"}, "separator 9 is not among the 4 tokens"),
        ({"documents": "whole"}, "documents requires separator="),
        ({"separator": 0}, 'window is required, unless documents="whole"'),
    ]:
        with pytest.raises(feedline.ConfigError, match=text):
            feedline.tokens(path, dtype="uint16", **options)
    with pytest.raises(feedline.DataError, match="vocabulary"):
        feedline.tokens(path, dtype="uint16", separator=0, documents="whole", vocabulary=3, check=True)
