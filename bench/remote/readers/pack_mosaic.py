# SPDX-License-Identifier: Apache-2.0
"""Writes the samples of tars as MosaicML shards: `pack_mosaic.py TARS OUT`."""

import shutil
import sys
from pathlib import Path

import torchvision_stub  # noqa: F401
from samples import samples
from streaming import MDSWriter

tars, out = Path(sys.argv[1]), Path(sys.argv[2])
shutil.rmtree(out, ignore_errors=True)
with MDSWriter(out=str(out), columns={"jpg": "bytes", "cls": "int"}, size_limit=1 << 26) as writer:
    for jpg, label in samples(tars):
        writer.write({"jpg": jpg, "cls": label})
