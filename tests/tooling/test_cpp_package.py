# SPDX-License-Identifier: Apache-2.0
"""Feedline in a C++ project: installed and found, and as a folder of that project. Both build examples/cpp."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "cpp"
TREE = Path(os.environ.get("FEEDLINE_TREE") or ROOT / "build" / "python").resolve()  # of the engine

pytestmark = [
    pytest.mark.skipif(not (TREE / "CMakeCache.txt").exists(), reason=f"the engine has not been built in {TREE}"),
    pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("ninja"), reason="no cmake and ninja on PATH"),
]


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def cached(tree: Path, name: str) -> str | None:
    found = re.search(rf"^{name}:\w+=(.*)$", (tree / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1] if found else None


def configure(tree: Path, *settings: str) -> None:
    compiler = f"-DCMAKE_CXX_COMPILER={cached(TREE, 'CMAKE_CXX_COMPILER')}"
    run("cmake", "-S", EXAMPLE, "-B", tree, "-G", "Ninja", compiler, *settings)


def runs_an_epoch(program: Path, folder: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow, which makes a photo to read, is not installed")
    (folder / "photos" / "cats").mkdir(parents=True)
    for name in ("a.jpg", "b.png", "c.webp"):  # every codec is linked
        image.new("RGB", (40, 30), (200, 10, 90)).save(folder / "photos" / "cats" / name)
    assert "3 samples" in run(program, folder / "photos", "2")


def test_what_runs_seldom_is_compiled_for_size_and_nothing_else() -> None:
    small = cached(TREE, "FEEDLINE_SMALL")
    if not small or cached(TREE, "CMAKE_BUILD_TYPE") != "Release":
        pytest.skip(f"{TREE} is no Release build with folders that are compiled for size")
    for_size, for_speed = set(), set()
    for unit in json.loads((TREE / "compile_commands.json").read_text()):
        # CMake 3.25 writes no "output" of a unit
        if re.search(r" -o \S*feedline_(?!\w*tests)\w+\.dir/", unit["command"]):
            folders = {str(path.parent.relative_to(ROOT / "src")) for path in sources_of(Path(unit["file"]))}
            (for_size if " -Os " in unit["command"] else for_speed).update(folders)
    inside = {
        folder for folder in for_size | for_speed if any(f"{folder}/".startswith(f"{x}/") for x in small.split(";"))
    }
    assert for_size == inside
    assert {"cache/node", "storage/s3"} <= for_size and {"cache", "storage", "transform"} <= for_speed


def sources_of(unit: Path) -> list[Path]:
    """Those that a generated source includes; or the source itself."""
    if ROOT / "src" in unit.parents:
        return [unit]
    return [Path(name) for name in re.findall(r'#include "(.*\.cpp)"', unit.read_text())]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Feedline has been installed, and moved to afterwards: no path of the build is in it."""
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", TREE, "--prefix", folder / "first", "--component", "development")
    return (folder / "first").rename(folder / "moved")


def test_an_installed_feedline_is_found_and_the_example_builds(installed: Path, tmp_path: Path) -> None:
    configure(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path / "build")
    runs_an_epoch(tmp_path / "build" / "feedline_epoch", tmp_path)


def test_only_public_headers_and_libraries_are_installed(installed: Path) -> None:
    headers = {path.name for path in installed.rglob("*") if path.suffix in (".h", ".def")}
    assert headers == {
        path.name for path in (ROOT / "include" / "feedline").rglob("*") if path.suffix in (".h", ".def")
    }
    rest = {path.suffix for path in installed.rglob("*") if path.is_file() and path.suffix not in (".h", ".def")}
    assert rest == {".a", ".cmake"}


def test_a_version_that_is_not_there_is_not_found(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\nfind_package(feedline 99 REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0 and 'compatible with requested version "99"' in done.stderr


def test_a_codec_that_is_missing_is_named(installed: Path, tmp_path: Path) -> None:
    command = ["cmake", "-S", EXAMPLE, "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}"]
    nowhere = {**os.environ, "PKG_CONFIG_LIBDIR": str(tmp_path), "PKG_CONFIG_PATH": ""}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=nowhere)
    words = " ".join(done.stderr.split())
    assert done.returncode != 0 and "feedline needs the library spng, which pkg-config does not find" in words


def test_the_example_builds_with_feedline_as_a_folder_of_it(tmp_path: Path) -> None:
    """The example, two folders of the engine and the project's own link command; the rest as it was compiled."""
    tree = tmp_path / "build"
    configure(tree, f"-DFEEDLINE_SOURCE={ROOT}")
    assert not cached(tree, "CMAKE_BUILD_TYPE"), "the project's build type was changed"
    commands = run("ninja", "-C", tree, "-t", "commands", "feedline_epoch")
    assert "-Wconversion" not in commands, "Feedline's warnings in another's build"
    assert "feedline_tests" not in run("ninja", "-C", tree, "-t", "targets", "all")
    run("cmake", "--install", tree, "--prefix", tmp_path / "prefix")
    assert not (tmp_path / "prefix").exists(), "Feedline was installed with another project"

    run("cmake", "--build", tree, "--target", "CMakeFiles/feedline_epoch.dir/epoch.cpp.o", "feedline_telemetry")
    for library in TREE.glob("libfeedline_*.a"):
        if not (tree / "feedline" / library.name).exists():
            (tree / "feedline" / library.name).symlink_to(library)
    run("bash", "-c", commands.splitlines()[-1], cwd=tree)
    runs_an_epoch(tree / "feedline_epoch", tmp_path)
