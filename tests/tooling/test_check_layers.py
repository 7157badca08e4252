# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py finds each break of each rule, at its line, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
TABLE = """\
include
src/base
src/decode  src/base
src/format  src/base
src/format/columns  src/base
tests       *
only jpeglib.h  src/decode
only webp/      src/decode
"""


class Tree:
    """A small checkout in good order, to break one thing in."""

    def __init__(self, root: Path):
        self.root = root
        self.write("tools/layers.txt", TABLE)
        self.source("include/feedline/error.h", "#include <string>")
        self.source("include/feedline/dataset.h", '#include "feedline/error.h"')
        self.source("src/base/clock.h", "#include <sys/time.h>\n#include <chrono>")
        self.source("src/decode/jpeg.h", '#include "base/clock.h"\n#include "feedline/error.h"')
        self.source("src/decode/jpeg.cpp", '#include "decode/jpeg.h"\n#include <jpeglib.h>\n#include <webp/decode.h>')
        self.source(
            "src/decode/jpeg_test.cpp", '#include "decode/jpeg.h"\n#include <gtest/gtest.h>\n#include "tests/photos.h"'
        )
        self.source("src/format/tar.h", '#include "base/clock.h"')
        self.source("src/format/columns/csv.h", '#include "base/clock.h"')
        self.source("src/format/columns/csv_test.cpp", '#include "format/tar.h"')
        self.source("tests/photos.h", '#include "decode/jpeg.h"\n#include "format/tar.h"\n#include <jpeglib.h>')
        for folder in ("base", "decode", "format"):
            self.write(f"src/{folder}/README.md", "# takes, gives\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def source(self, path: str, text: str) -> None:
        self.write(path, SPDX + text + "\n")

    def check(self) -> tuple[int, list[str]]:
        done = subprocess.run(
            [sys.executable, ROOT / "tools/check_layers.py", "--root", self.root], capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_tree_in_order_passes(tree):
    assert tree.check() == (0, [])


def test_this_repository_is_in_order():
    done = subprocess.run([sys.executable, ROOT / "tools/check_layers.py"], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        pytest.param(
            "src/base/clock.cpp",
            '#include "decode/jpeg.h"',
            ":2: layer: src/base may not include src/decode",
            id="upwards",
        ),
        pytest.param(
            "src/format/tar.cpp",
            '\n\n#include "decode/jpeg.h"',
            ":4: layer: src/format may not include src/decode",
            id="sibling",
        ),
        pytest.param("src/format/tar.cpp", '  #  include "decode/jpeg.h"', ":2: layer:", id="spaces"),
        pytest.param(
            "src/format/tar.cpp", '/* two\n lines */\n#include "decode/jpeg.h"', ":4: layer:", id="after_a_comment"
        ),
        pytest.param(
            "src/format/tar.cpp",
            '#include "tests/photos.h"',
            ":2: layer: src/format may not include tests",
            id="tests_from_source",
        ),
        pytest.param("src/format/tar_test.cpp", '#include "decode/jpeg.h"', ":2: layer:", id="sibling_from_unit_test"),
        pytest.param(
            "src/format/columns/csv.cpp",
            '#include "format/tar.h"',
            ":2: layer: src/format/columns may not include src/format",
            id="room_to_its_folder",
        ),
        pytest.param(
            "src/format/columns/csv_test.cpp",
            '#include "decode/jpeg.h"',
            ":2: layer: src/format/columns may not include src/decode",
            id="test_of_a_room",
        ),
        pytest.param("src/format/tar.cpp", '#include "../decode/jpeg.h"', ":2: path:", id="dot_dot"),
        pytest.param("src/format/tar.cpp", '#include "tar.h"', ":2: path:", id="not_from_src"),
        pytest.param("src/format/tar.cpp", '#include "base/clocks.h"', ":2: path:", id="no_such_file"),
        pytest.param(
            "src/format/tar.cpp", "#include <jpeglib.h>", ":2: foreign: <jpeglib.h> belongs to src/decode", id="foreign"
        ),
        pytest.param("src/format/tar.cpp", "#include <webp/mux.h>", ":2: foreign:", id="foreign_folder"),
        pytest.param("src/format/tar.cpp", '#include "jpeglib.h"', ":2: foreign:", id="foreign_quoted"),
        pytest.param(
            "src/format/tar.cpp",
            "#include <leveldb/db.h>",
            ":2: foreign: <leveldb/db.h> has no folder",
            id="foreign_unknown",
        ),
        pytest.param(
            "src/format/tar.cpp",
            "#include <gtest/gtest.h>",
            ":2: foreign: <gtest/gtest.h> belongs to tests",
            id="gtest",
        ),
        pytest.param("include/feedline/x.h", "#include <jpeglib.h>", ":2: public:", id="public_foreign"),
        pytest.param("include/feedline/x.h", "#include <unistd.h>", ":2: public:", id="public_posix"),
        pytest.param("include/feedline/x.h", '#include "base/clock.h"', ":2: public:", id="public_private"),
        pytest.param("src/tune/ladder.h", "", ":1: folder:", id="folder_not_in_table"),
        pytest.param("src/base/string_util.h", "", ":1: name: `util`", id="name"),
        pytest.param("src/base/tar_2.cpp", "", ":1: name: `2`", id="number_as_name"),
        pytest.param(
            "src/format/tar.cpp", "std::jthread t(work);", ":2: thread: std::jthread: use base::Thread", id="thread"
        ),
        pytest.param("src/format/tar.cpp", "\nstd::vector<std::thread> all;", ":3: thread:", id="thread_in_vector"),
        pytest.param("src/format/tar.h", "auto f = std::async(work);", ":2: thread:", id="thread_async"),
        pytest.param("src/base/clock.cpp", "pthread_create(&t, 0, f, 0);", ":2: thread:", id="thread_posix"),
    ],
)
def test_a_break_is_found(tree, path, text, found):
    tree.source(path, text)
    status, lines = tree.check()
    assert status == 1
    assert any(line.startswith(path) and found in line for line in lines), lines


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("src/format/tar.cpp", '// #include "decode/jpeg.h"', id="line_comment"),
        pytest.param("src/format/tar.cpp", '/*\n#include "decode/jpeg.h"\n*/', id="block_comment"),
        pytest.param("src/format/tar_contract.h", "#include <gtest/gtest.h>", id="contract_suite"),
        pytest.param("src/format/fake_photos.h", "#include <jpeglib.h>", id="fake"),
        pytest.param("build/x.cpp", '#include "decode/jpeg.h"', id="build_folder"),
        pytest.param(".venv/x.cpp", '#include "decode/jpeg.h"', id="hidden_folder"),
        pytest.param("tests/cross_test.cpp", '#include "photos.h"\n#include <webp/mux.h>', id="tests_are_free"),
    ],
)
def test_what_is_allowed_passes(tree, path, text):
    tree.source(path, text)
    assert tree.check() == (0, [])


PYTHON_TABLE = (
    TABLE
    + """\
python/feedline         *
python/feedline/machine
python/feedline/data    python/feedline/machine
"""
)


@pytest.fixture
def package(tree):
    """The tree with a package in good order."""
    tree.write("tools/layers.txt", PYTHON_TABLE)
    spdx = "# SPDX-License-Identifier: Apache-2.0\n"
    tree.module = lambda path, text: tree.write(f"python/feedline/{path}", spdx + text + "\n")
    tree.module("__init__.py", "from .data.dataset import open")
    tree.module("_engine.pyi", "")
    tree.module("data/__init__.py", "")
    tree.module("errors.py", "class Error(Exception): ...")
    tree.module("machine/limits.py", "from .. import _engine\nfrom ..errors import Error")
    tree.module("data/dataset.py", "from feedline.machine import limits\nfrom . import rows\nimport os")
    tree.module("data/rows.py", "import numpy")
    assert tree.check() == (0, [])
    return tree


@pytest.mark.parametrize(
    "statement",
    [
        "from ..data.dataset import open",
        "from ..data import dataset",
        "from .. import data",
        "from feedline.data import dataset",
        "import feedline.data.dataset",
        "def later():\n    from ..data import rows",
        "if True:\n    import feedline.data",
    ],
)
def test_an_import_upwards_is_found(package, statement):
    package.module("machine/limits.py", "import os\n" + statement)
    line = 3 + statement.count("\n")
    status, lines = package.check()
    assert status == 1 and len(lines) == 1
    assert lines[0].startswith(
        f"python/feedline/machine/limits.py:{line}: import: python/feedline/machine may not import"
    )


@pytest.mark.parametrize("statement", ["import feedline", "from .. import open", "from feedline import open"])
def test_the_public_names_are_for_those_that_list_the_package(package, statement):
    package.module("data/lists.py", statement)
    assert package.check()[0] == 1
    package.write("tools/layers.txt", PYTHON_TABLE.replace("data    python", "data    python/feedline python"))
    assert package.check() == (0, [])


def test_imports_for_types_alone_count(package):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..data import columns"
    package.module("machine/limits.py", text)
    assert package.check()[0] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "from . import dataset",
        "from .dataset import Dataset",
        "from feedline.data.dataset import Dataset",
        "import feedline.data.dataset",
        "def later():\n    from .dataset import Dataset",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .dataset import Dataset",
    ],
)
def test_a_circle_of_three_modules_is_found(package, statement):
    package.module("data/rows.py", "from . import columns")
    package.module("data/columns.py", "import numpy")
    assert package.check() == (0, [])
    package.module("data/columns.py", statement)
    line = 2 + statement.count("\n")
    names = "data/columns.py, data/dataset.py, data/rows.py"
    found = f"python/feedline/data/columns.py:{line}: circle: 3 files import each other: {names}"
    assert package.check() == (1, [found])


def test_a_circle_of_two_modules_passes(package):
    package.module("data/rows.py", "def later():\n    from .dataset import open")
    assert package.check() == (0, [])


def test_a_circle_through_the_package_itself_is_found(package):
    package.write("tools/layers.txt", PYTHON_TABLE.replace("data    python", "data    python/feedline python"))
    package.module("data/rows.py", "from .. import open")
    status, lines = package.check()
    assert status == 1
    assert lines[0].endswith("circle: 3 files import each other: __init__.py, data/dataset.py, data/rows.py")


def test_a_folder_of_the_package_needs_a_place_in_the_table(package):
    package.module("doctor/limits.py", "")
    assert package.check() == (1, ["python/feedline/doctor/limits.py:1: folder: is in no folder of tools/layers.txt"])


def test_what_an_included_header_includes_counts(tree):
    tree.write(
        "tools/layers.txt",
        TABLE.replace("src/format  src/base", "src/format  src/base src/decode") + "src/consumer src/base src/format\n",
    )
    tree.write("src/consumer/README.md", "# takes, gives\n")
    tree.source("src/format/photo.h", '#include "decode/jpeg.h"')
    tree.source("src/consumer/loader.cpp", '#include <vector>\n#include "format/photo.h"')
    way = "src/format/photo.h -> src/decode/jpeg.h"
    assert tree.check() == (
        1,
        [f"src/consumer/loader.cpp:3: closure: src/consumer may not reach src/decode, through {way}"],
    )
    tree.source("src/format/photo.h", "namespace feedline::decode { class Jpeg; }")
    assert tree.check() == (0, [])


@pytest.mark.parametrize("way", ["feedline/dataset.h", "feedline/opened.h"])
def test_a_public_header_can_be_kept_from_a_folder(tree, way):
    tree.write("tools/layers.txt", TABLE + "without src/base feedline/dataset.h\n")
    assert tree.check() == (0, [])
    tree.source("include/feedline/opened.h", '#include "feedline/dataset.h"')
    tree.source("src/base/clock.cpp", f'#include "{way}"')
    status, lines = tree.check()
    assert status == 1
    assert lines[0].startswith(
        "src/base/clock.cpp:2: without: src/base may not reach feedline/dataset.h, through include/"
    )
    tree.write("tools/layers.txt", TABLE + "without src/bases feedline/dataset.h\n")
    assert "`without` names src/bases" in tree.check()[1][0]


@pytest.mark.parametrize(
    "path", ["src/base/x.cpp", "tools/x.py", "tools/CMakeLists.txt", "tools/x.cmake", "python/x.pyi"]
)
def test_a_missing_licence_line_is_found(tree, path):
    tree.write(path, "\nx\n")
    assert tree.check() == (1, [f"{path}:1: licence: the line `SPDX-License-Identifier: Apache-2.0` is missing"])


def test_a_script_has_its_licence_on_the_second_line(tree):
    tree.write("tools/x", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n")
    assert tree.check() == (0, [])
    tree.write("tools/x", "#!/bin/sh\ntrue\n")
    assert tree.check() == (1, ["tools/x:2: licence: the line `SPDX-License-Identifier: Apache-2.0` is missing"])


def test_a_readme_is_demanded_and_short(tree):
    tree.write("src/base/README.md", "line\n" * 40)
    (tree.root / "src/format/README.md").unlink()
    assert tree.check() == (1, ["src/format/README.md:1: readme: is missing"])
    tree.write("src/format/README.md", "line\n" * 41)
    assert tree.check() == (1, ["src/format/README.md:41: readme: has more than 40 lines"])


@pytest.mark.parametrize(("folder", "ending"), [("src/base", ".h"), ("tools", ".py")])
def test_a_folder_of_more_than_30_units_is_found(tree, folder, ending):
    (tree.root / "src/base/clock.h").rename(tree.root / "src/base/part.h")
    for path in ("src/decode/jpeg.h", "src/format/tar.h", "src/format/columns/csv.h"):
        tree.source(path, "")
    count = 30 if folder == "src/base" else 31
    for i in range(count):
        tree.write(
            f"{folder}/part{i}{ending}", f"{'//' if ending == '.h' else '#'} SPDX-License-Identifier: Apache-2.0\n"
        )
    assert tree.check() == (1, [f"{folder}:1: units: has 31 units, more than 30: group them in subfolders"])
    (tree.root / folder / f"part0{ending}").unlink()
    assert tree.check() == (0, [])


def test_sources_of_a_header_tests_and_rooms_are_no_units(tree):
    for i in range(29):  # with clock.h: 30
        tree.source(f"src/base/part{i}.h", "")
        tree.source(f"src/base/part{i}.cpp", "")
        tree.source(f"src/base/part{i}_test.cpp", "")
    for i in range(31):
        tree.source(f"src/base/parts{i % 2}/part{i}.h", "")
        tree.source(f"tests/part{i}.h", "")
    assert tree.check() == (0, [])


def test_a_slash_stands_for_a_folder_and_its_rooms(tree):
    tree.write("src/plan/README.md", "# takes, gives\n")
    tree.source("src/plan/plan.h", '#include "format/columns/csv.h"\n#include "format/tar.h"\n#include <zlib.h>')
    tree.write("tools/layers.txt", TABLE + "src/plan src/base src/format\nonly zlib.h src/plan\n")
    assert tree.check() == (1, ["src/plan/plan.h:2: layer: src/plan may not include src/format/columns"])
    tree.write("tools/layers.txt", TABLE + "src/plan src/base src/format/\nonly zlib.h src/plan/\n")
    assert tree.check() == (0, [])


def test_tests_of_a_room_may_use_the_rooms_next_to_it(tree):
    tree.write("tools/layers.txt", TABLE + "src/format/rows src/base\n")
    tree.source("src/format/rows/rows.h", "")
    tree.source("src/format/columns/csv_test.cpp", '#include "format/rows/rows.h"')
    tree.source("src/format/tar_test.cpp", '#include "format/rows/rows.h"')
    assert tree.check() == (0, [])
    tree.source("src/format/columns/csv.cpp", '#include "format/rows/rows.h"')
    assert tree.check() == (
        1,
        ["src/format/columns/csv.cpp:2: layer: src/format/columns may not include src/format/rows"],
    )


def test_a_table_that_turns_back_is_refused(tree):
    tree.write("tools/layers.txt", TABLE.replace("src/base\n", "src/base src/format\n", 1))
    status, lines = tree.check()
    assert status == 1
    assert "tools/layers.txt:1: cycle: src/base -> src/format -> src/base" in lines


def test_the_build_links_no_more_than_the_table_allows():
    """CMakeLists.txt names each folder's dependencies a second time: the same ones."""
    table = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].startswith("src/"):
            table[words[0][4:]] = {word[4:].rstrip("/") for word in words[1:]}
    linked = {}
    for call in re.findall(r"^feedline_layer\(([^)]*)\)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE):
        words = re.split(r"\s(?:LIBS|FIXTURES)\s", call)[0].split()
        linked[words[0]] = set(words[2:])
    assert linked
    for folder, names in linked.items():
        assert names <= table[folder], folder


def test_threads_are_made_in_one_place(tree):
    for path in ("src/base/thread.cpp", "src/base/thread.h", "src/format/tar_test.cpp", "tests/hammer.cpp"):
        tree.source(path, "std::thread thread(work);")
    tree.source("src/format/tar.cpp", "std::thread::id self = std::this_thread::get_id();  // not a std::thread")
    assert tree.check() == (0, [])


@pytest.mark.parametrize(
    "call",
    [
        "::open(path.c_str(), O_RDONLY)",
        "::stat(path.c_str(), &status)",
        "std::ifstream file(path)",
        "std::fopen(path, text)",
        "std::filesystem::exists(path)",
        "std::rename(from, to)",
        "return ::unlink(path.c_str())",
    ],
)
def test_a_file_is_asked_for_by_its_name_where_that_may_be(tree, call):
    what = call.removeprefix("return ").partition("(")[0].partition(" ")[0].lstrip(":")
    tree.source("src/format/tar.cpp", f'#include "format/tar.h"\nauto found = {call};')
    tree.source("src/format/tar_test.cpp", f"auto found = {call};")
    assert tree.check() == (
        1,
        [f"src/format/tar.cpp:3: call: {what}: pass file names to storage, or to cache for Feedline's own files"],
    )
    tree.write("tools/layers.txt", TABLE + "calls src/format  # the door\n")
    assert tree.check() == (0, [])
    tree.write("tools/layers.txt", TABLE + "calls src/nowhere\n")
    assert "tools/layers.txt:1: folder: `calls` names src/nowhere, which the table does not have" in tree.check()[1]


def test_what_only_looks_like_a_call_for_a_file_is_free(tree):
    tree.source(
        "src/format/tar.cpp",
        "storage::open(path); reader->stat(); ::fstat(fd, &status); Shard::open(path);  // ::open(path)\n"
        "std::filesystem::path(path).filename(); result.open(path); list.unlink(x); Tar::stat(x);",
    )
    assert tree.check() == (0, [])
