# SPDX-License-Identifier: Apache-2.0
"""Which sources are compiled as one: tools/cmake/unity_groups.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "cmake"))

import unity_groups  # noqa: E402


def written(folder: Path, sources: dict[str, str]) -> list[Path]:
    for name, text in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return [folder / name for name in sources]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("int area(int x) {\n", "int volume(int x) {\n", True),
        ("int area(int x) {\n", "double area(double x) {\n", False),
        ("constexpr int kMost = 3;\n", "constexpr long kMost = 4;\n", False),
        ("constexpr int kLeast = 1, kMost = 3;\n", "constexpr long kMost = 4;\n", False),
        ("struct Page {\n", "class Page;\n", False),
        ("struct Page {\n", "int size(const feedline::Page& page) {\n", False),
        ("struct Page {\n", "int size(const feedline::Pages& page) {\n", True),
        ("using Bytes = std::span<const std::byte>;\n", "using Bytes = std::span<const std::byte>;\n", True),
        ("using Bytes = std::span<const std::byte>;\n", "using Bytes = std::string;\n", False),
        ("void Reader::close() {\n", "void Writer::close() {\n", True),
        ("  int area = 1;\n", "int area(int x) {\n", True),
        ("static_assert(kMost == 3);\n", "static_assert(kLeast == 1);\n", True),
        ("FEEDLINE_OPERATION(pad, Pad)\n", "FEEDLINE_OPERATION(crop, Crop)\n", True),
        ("FEEDLINE_OPERATION(pad, Pad)\n", "int area(int x) {\n", False),
    ],
)
def test_two_that_define_a_name_are_apart(one, other, together, tmp_path):
    sources = written(tmp_path, {"one.cpp": one, "other.cpp": other})
    assert (len(unity_groups.groups_of(sources, 8)) == 1) is together


def test_a_function_that_a_header_of_the_other_declares_is_apart(tmp_path):
    header = "std::string extension_of(std::string_view path);\n"
    sources = {"format/inner.h": header, "format/names.h": '#include "format/inner.h"\n'}
    sources["one.cpp"] = '#include "format/names.h"\n'
    sources["other.cpp"] = "std::string extension_of(std::string_view name) {\n"
    sources["third.cpp"] = "int area(int x) {\n"
    paths = written(tmp_path, sources)[2:]
    assert unity_groups.groups_of(paths, 8) == [[paths[0], paths[2]], [paths[1]]]


def test_folders_are_together_and_the_rest_of_several_folders_is(tmp_path):
    names = [f"big/{i}.cpp" for i in range(5)] + ["few/a.cpp", "one/b.cpp"]
    groups = unity_groups.named_groups(written(tmp_path, {name: f"int f_{name[-5]};\n" for name in names}), 4)
    inside = {name: [f"{path.parent.name}/{path.name}" for path in members] for name, members in groups.items()}
    assert inside.pop("rest_0") == names[4:]
    assert list(inside.values()) == [names[:4]]


def test_the_sources_of_the_engine_make_few_groups():
    sources = [path for path in sorted((ROOT / "src").rglob("*.cpp")) if not path.name.endswith("_test.cpp")]
    groups = unity_groups.named_groups(sources, 8)
    assert sorted(path for members in groups.values() for path in members) == sources
    assert len(groups) < len(sources) / 5
