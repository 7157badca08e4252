# SPDX-License-Identifier: Apache-2.0
"""Measures rows per second of shuffled numeric columns in Parquet, Arrow and CSV files, relative to a tensor in memory.

Each round measures all of them once, in turn: the ratio of a round is a source's rate divided by the tensor's. The
first epoch, which decompresses the pages, is reported separately. Needs pyarrow and torch.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COLUMNS = 32
CSV_SHARE = 4  # the CSV file has this fraction of the rows, because it is parsed when it is opened


def write_tables(folder: Path, rows: int) -> dict[str, tuple[Path, str | None]]:
    """Returns the path of each source, and the field to open, or None if every column is a field."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    values = np.random.default_rng(0).standard_normal((rows, COLUMNS), dtype=np.float32)
    columns = pa.table({f"c{i}": values[:, i] for i in range(COLUMNS)})
    labelled = columns.append_column("label", pa.array(np.arange(rows) % 10))
    lists = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), COLUMNS)})
    for name, table in (("columns", columns), ("labelled", labelled), ("lists", lists)):
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
        with (
            pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table, max_chunksize=10_000)
    pc.write_csv(columns.slice(0, rows // CSV_SHARE), folder / "columns.csv")
    matrix = "x=" + "+".join(columns.column_names)
    return {
        "parquet, 32 columns as a matrix": (folder / "columns.parquet", matrix),
        "parquet, 32 fields": (folder / "columns.parquet", None),
        "parquet, 32 fields and a label": (folder / "labelled.parquet", None),
        "parquet, lists of 32": (folder / "lists.parquet", "x"),
        "arrow, 32 columns as a matrix": (folder / "columns.arrow", matrix),
        "arrow, 32 fields": (folder / "columns.arrow", None),
        "arrow, lists of 32": (folder / "lists.arrow", "x"),
        "csv, 32 fields": (folder / "columns.csv", None),
    }


def rate_of(batches: Iterable[Any], rows: int) -> float:
    started = time.perf_counter()
    for _ in batches:
        pass
    return rows / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    import torch

    import feedline

    tensor = torch.randn(given.rows, COLUMNS)

    def tensor_batches() -> Iterable[Any]:
        order = torch.randperm(given.rows)
        return (tensor.index_select(0, order[i : i + given.batch_size]) for i in range(0, given.rows, given.batch_size))

    with tempfile.TemporaryDirectory() as name:
        sources: dict[str, tuple[Iterable[Any], int]] = {}
        for title, (path, field) in write_tables(Path(name), given.rows).items():
            dataset = feedline.open(path, fields=field)
            loader = dataset.loader(given.batch_size, shuffle=True)
            rate = rate_of(loader, len(dataset))
            print(f"{title:32} first epoch {rate:12,.0f} rows/s", flush=True)
            sources[title] = (loader, len(dataset))
        ratios: dict[str, list[float]] = {title: [] for title in sources}
        for _ in range(given.rounds):
            base = rate_of(tensor_batches(), given.rows)
            for title, (batches, rows) in sources.items():
                ratios[title].append(rate_of(batches, rows) / base)
        for title, all_ratios in ratios.items():
            low, high = min(all_ratios), max(all_ratios)
            print(f"{title:32} {statistics.median(all_ratios):.2f} of the tensor's rate ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
