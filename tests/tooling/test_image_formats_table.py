# SPDX-License-Identifier: Apache-2.0
"""The image formats are in one table, src/decode/image_formats.cpp, and docs/formats.md shows it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "image_formats_table.py"
EXTENSION = r"[\"']\.?(jpe?g|png|webp|gif|bmp|tiff?|avif|heic|jp2)[\"']"
LISTED = re.compile(rf"{EXTENSION},\s*{EXTENSION}|\\x89PNG|\\x[fF][fF]\\x[dD]8|\"(RIFF|ftyp|GIF8)")
WRITES_JPEGS = ROOT / "python/feedline/bench/machine/jpeg.py"


def test_the_table_of_the_docs_is_current():
    pytest.importorskip("feedline._engine", reason="the extension is not built")
    checked = subprocess.run([sys.executable, TOOL, "--check"], check=False)
    assert checked.returncode == 0, "run tools/image_formats_table.py"


def test_no_other_file_lists_extensions_or_signatures():
    sources = [*ROOT.glob("src/**/*.cpp"), *ROOT.glob("src/**/*.h"), *ROOT.glob("python/**/*.cpp")]
    sources = [path for path in sources if not re.search(r"_test\.|_fixture\.|_contract\.", path.name)]
    sources += ROOT.glob("python/feedline/**/*.py")
    found = [path for path in sources if LISTED.search(path.read_text())]
    codecs = [path for path in found if path.is_relative_to(ROOT / "src/decode")]
    assert ROOT / "src/decode/image_formats.cpp" in codecs
    assert sorted(set(found) - set(codecs)) == [WRITES_JPEGS]
