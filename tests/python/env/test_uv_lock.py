# SPDX-License-Identifier: Apache-2.0
"""If uv.lock has several entries for a package, the one whose markers match the environment's Python counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_environments import Environment

from feedline.cli.root import run
from feedline.env.differences import compare, compare_with_lock
from feedline.env.load import listing_at
from feedline.env.locks.listing import Listing
from feedline.env.scan import read_environment
from feedline.errors import ConfigError

REGISTRY = '{ registry = "https://pypi.org/simple" }'
BELOW, FROM = "python_full_version < '3.12'", "python_full_version >= '3.12'"


def entry(name: str, version: str, *, marker: str = "", registry: str = REGISTRY, rest: str = "") -> str:
    markers = f'resolution-markers = ["{marker}"]\n' if marker else ""
    return f'[[package]]\nname = "{name}"\nversion = "{version}"\nsource = {registry}\n{markers}{rest}\n'


def root(dependencies: str, *, rest: str = "", requires: str = ">=3.10") -> str:
    return (
        f'version = 1\nrequires-python = "{requires}"\n[[package]]\nname = "demo"\nversion = "0.1"\n'
        f'source = {{ virtual = "." }}\ndependencies = [{dependencies}]\n{rest}\n'
    )


def wants(name: str, version: str = "", *, marker: str = "", registry: str = "") -> str:
    parts = [f'name = "{name}"']
    parts += [f'version = "{version}"'] if version else []
    parts += [f"source = {registry}"] if registry else []
    parts += [f'marker = "{marker}"'] if marker else []
    return f"{{ {', '.join(parts)} }},"


def read(folder: Path, text: str, python: str = "3.11.7") -> Listing:
    (folder / "uv.lock").write_text(text)
    return listing_at(folder / "uv.lock", python)


def versions(listing: Listing) -> dict[str, str]:
    return {pin.name: pin.version for pin in listing.pins}


FORKED = entry("a", "1.0", marker=BELOW) + entry("a", "2.0", marker=FROM)


@pytest.mark.parametrize(
    ("python", "version"),
    [
        ("3.11.7", "1.0"),
        ("3.12.0", "2.0"),
        ("3.13", "2.0"),
        ("3.12.0rc1", "2.0"),
        ("3.12.0a7", "2.0"),
        ("3.11.0b4", "1.0"),
        ("3.12.1+", "2.0"),
    ],
)
@pytest.mark.parametrize("versions_in_dependencies", [True, False])
def test_the_entry_that_holds_counts(python: str, version: str, versions_in_dependencies: bool, tmp_path: Path) -> None:
    needs = wants("a", "1.0", marker=BELOW) + wants("a", "2.0", marker=FROM)
    text = root(needs if versions_in_dependencies else wants("a")) + FORKED
    assert versions(read(tmp_path, text, python)) == {"a": version}
    needed_by = entry("b", "5", rest=f"dependencies = [{needs if versions_in_dependencies else wants('a')}]")
    assert versions(read(tmp_path, root(wants("b")) + needed_by + FORKED, python)) == {"a": version, "b": "5"}


def test_what_each_entry_needs_is_followed(tmp_path: Path) -> None:
    text = root(wants("a")) + entry("a", "1.0", marker=BELOW, rest=f"dependencies = [{wants('old')}]")
    text += entry("a", "2.0", marker=FROM, rest=f"dependencies = [{wants('new')}]")
    text += entry("old", "1") + entry("new", "1")
    assert versions(read(tmp_path, text, "3.11.7")) == {"a": "1.0", "old": "1"}
    assert versions(read(tmp_path, text, "3.12.1")) == {"a": "2.0", "new": "1"}


def test_one_version_of_two_indexes(tmp_path: Path) -> None:
    """uv writes the source of a dependency if only the index differs, as with builds of torch."""
    other = '{ registry = "https://download.pytorch.org/whl/cpu" }'
    linux, mac = "sys_platform == 'linux'", "sys_platform == 'darwin'"
    needs = wants("torch", "2.9.0+cpu", registry=other, marker=linux) + wants(
        "torch", "2.9.0", registry=REGISTRY, marker=mac
    )
    text = root(needs) + entry("torch", "2.9.0", marker=mac) + entry("torch", "2.9.0+cpu", marker=linux, registry=other)
    listing = read(tmp_path, text)
    assert versions(listing) == {"torch": "2.9.0+cpu"}
    assert listing.index_options == ("--extra-index-url", "https://download.pytorch.org/whl/cpu")


def test_conflicting_extras_and_groups_are_those_that_uv_installs_by_default(tmp_path: Path) -> None:
    cpu, gpu = "extra == 'extra-4-demo-cpu'", "extra != 'extra-4-demo-cpu'"
    group = wants("tool", marker="extra == 'group-4-demo-dev'")
    needs = wants("a", "1.0", marker=cpu) + wants("a", "2.0", marker=gpu) + group
    text = root(needs) + entry("a", "1.0") + entry("a", "2.0") + entry("tool", "3")
    assert versions(read(tmp_path, text)) == {"a": "2.0", "tool": "3"}


def test_a_lock_without_a_project_lists_the_entries_that_hold(tmp_path: Path) -> None:
    text = 'version = 1\nrequires-python = ">=3.10"\n' + FORKED + entry("b", "5")
    assert versions(read(tmp_path, text)) == {"a": "1.0", "b": "5"}


@pytest.mark.parametrize(
    ("needs", "entries"),
    [
        (wants("a"), entry("a", "1.0") + entry("a", "2.0")),  # both hold
        (wants("a", "3.0"), FORKED),
        (wants("a"), entry("a", "1.0", marker=FROM) + entry("a", "2.0", marker=FROM)),  # none holds
    ],
)
def test_entries_that_do_not_decide_are_an_error(needs: str, entries: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"uv.lock is damaged: .* a \(1.0, 2.0\)"):
        read(tmp_path, root(needs) + entries)


def test_pylock_markers_of_groups_and_extras(tmp_path: Path) -> None:
    packages = [
        ("a", ""),
        ("b", "'dev' in dependency_groups"),
        ("c", "'all' in extras"),
        ("d", "'x' in dependency_groups"),
    ]
    text = 'lock-version = "1.0"\ndefault-groups = ["dev"]\n'
    for name, marker in packages:
        text += f'[[packages]]\nname = "{name}"\nversion = "1"\n' + (f'marker = "{marker}"\n' if marker else "")
    (tmp_path / "pylock.toml").write_text(text)
    assert versions(listing_at(tmp_path / "pylock.toml", "3.11.7")) == {"a": "1", "b": "1"}


@pytest.mark.parametrize(
    ("requires", "python", "differ"),
    [
        (">=3.10", "3.11.7", False),
        (">=3.10,<3.12", "3.11.7", False),
        ("==3.11.*", "3.11.7", False),
        ("==3.11.7", "3.11.7", False),
        ("==3.11.6", "3.11.7", True),
        (">=3.12", "3.11.7", True),
        ("~=3.11", "3.13.1", False),
        (">=3.14", "3.14.0rc1", False),
        (">=3.14.1", "3.14.0rc1", True),
        (">=3.14.0rc2", "3.14.0rc1", True),
        ("<3.14", "3.14.0rc1", True),
    ],
)
def test_requires_python_is_a_range(requires: str, python: str, differ: bool, tmp_path: Path) -> None:
    made = Environment(tmp_path / "env", python=python)
    made.project("a", "1.0")
    lock = read(tmp_path, root(wants("a"), requires=requires) + entry("a", "1.0"), python)
    seen = listing_at(made.prefix)
    for found in (compare(lock, seen), compare(seen, lock), compare_with_lock(lock, read_environment(made.prefix))):
        assert [one.name for one in found] == (["python"] if differ else [])
    assert compare(lock, lock) == []


def test_an_environment_with_a_release_candidate_of_python(tmp_path: Path) -> None:
    """Like uv, 3.14.0rc1 is compared as 3.14.0; by the specification of markers, neither entry would apply."""
    made = Environment(tmp_path / "env", python="3.14.0rc1")
    made.project("a", "2.0")
    markers = "python_full_version < '3.14'", "python_full_version >= '3.14'"
    text = root(wants("a")) + entry("a", "1.0", marker=markers[0]) + entry("a", "2.0", marker=markers[1])
    seen = read_environment(made.prefix)
    lock = read(tmp_path, text, seen.place.python or "")
    assert versions(lock) == {"a": "2.0"}
    assert list(compare_with_lock(lock, seen)) == []


@pytest.mark.parametrize("lock_first", [True, False])
def test_diff_reads_a_lock_by_the_python_of_the_other_side(lock_first: bool, tmp_path: Path) -> None:
    """The Python that runs the command is not the environment's Python."""
    for python, version in (("3.10.2", "1.0"), ("3.14.1", "2.0")):
        made = Environment(tmp_path / python, python=python)
        made.project("a", version)
        read(tmp_path, root(wants("a")) + FORKED)
        sides = [str(tmp_path / "uv.lock"), str(made.prefix)]
        assert run(["env", "diff", *(sides if lock_first else reversed(sides))]) == 0
