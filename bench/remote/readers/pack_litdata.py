# SPDX-License-Identifier: Apache-2.0
"""Writes the samples of tars as LitData chunks: `pack_litdata.py TARS OUT`."""

import shutil
import sys
from pathlib import Path

import litdata
from samples import samples


def whole(sample: tuple[bytes, int]) -> dict[str, object]:
    return {"jpg": sample[0], "cls": sample[1]}


if __name__ == "__main__":
    tars, out = Path(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(out, ignore_errors=True)
    litdata.optimize(fn=whole, inputs=list(samples(tars)), output_dir=str(out), chunk_bytes="64MB", num_workers=1)
