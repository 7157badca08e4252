# SPDX-License-Identifier: Apache-2.0
"""Lock files of every kind are read completely; damaged files and unknown versions are rejected with an error that
names the problem.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_environments import Environment

from feedline.env.differences import compare
from feedline.env.load import listing_at
from feedline.env.locks.listing import Listing
from feedline.env.reading.place import platform_name
from feedline.env.scan import read_environment
from feedline.env.snapshot import own_fingerprint, snapshot_of
from feedline.errors import ConfigError

URL = "https://conda.anaconda.org/conda-forge"
HERE = platform_name()
SHA = "a" * 64

LOCKS = {
    "environment.yml": """
name: x
channels: [conda-forge, nodefaults]
dependencies:
  - python=3.11.7=h0_cpython
  - conda-forge::numpy=2.1.0=py311_0
  - scipy>=1.10,<2
  - zlib=1.3
  - pip:
    - einops==0.8.0
    - win ; sys_platform == "win32"
""",
    "explicit.txt": f"""# platform: {HERE}
@EXPLICIT
{URL}/{HERE}/python-3.11.7-h0_cpython.conda#sha256:{SHA}
{URL}/{HERE}/numpy-2.1.0-py311_0.tar.bz2#{"b" * 32}
""",
    "list.txt": f"""# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: {HERE}
einops=0.8.0=pypi_0
numpy=2.1.0=py311_0
conda-forge::python==3.11.7=h0_cpython
""",
    "environment.json": """
{"name": "x", "channels": ["conda-forge"], "dependencies": ["python==3.11.7=h0_cpython", "numpy=2.1.0=py311_0",
 {"pip": ["einops==0.8.0"]}]}
""",
    "conda-lock.yml": f"""
version: 1
metadata:
  channels: [{{url: conda-forge, used_env_vars: []}}]
  platforms: [{HERE}, osx-arm64]
package:
- {{name: python, version: 3.11.7, manager: conda, platform: {HERE}, url: "{URL}/{HERE}/python-3.11.7-h0_cpython.conda",
   hash: {{md5: bb, sha256: {SHA}}}, category: main, optional: false}}
- {{name: numpy, version: 9.9, manager: conda, platform: osx-arm64, url: "{URL}/osx-arm64/numpy-9.9-0.conda",
   hash: {{md5: cc}}, category: main, optional: false}}
- {{name: numpy, version: 2.1.0, manager: conda, platform: {HERE}, url: "{URL}/{HERE}/numpy-2.1.0-py311_0.conda",
   hash: {{md5: cc}}, category: main, optional: false}}
- {{name: pytest, version: 8.0.0, manager: conda, platform: {HERE}, url: "{URL}/{HERE}/pytest-8.0.0-0.conda",
   hash: {{md5: dd}}, category: dev, optional: true}}
- {{name: einops, version: 0.8.0, manager: pip, platform: {HERE}, url: "https://x/einops-0.8.0-py3-none-any.whl",
   hash: {{sha256: {SHA}}}, category: main, optional: false}}
""",
    "pixi.lock": f"""
version: 6
environments:
  default:
    channels: [{{url: "{URL}/"}}]
    packages:
      {HERE}:
      - conda: {URL}/{HERE}/python-3.11.7-h0_cpython.conda
      - conda: {URL}/{HERE}/numpy-2.1.0-py311_0.conda
      - pypi: https://x/einops-0.8.0-py3-none-any.whl
packages:
- conda: {URL}/{HERE}/python-3.11.7-h0_cpython.conda
  sha256: {SHA}
- conda: {URL}/{HERE}/numpy-2.1.0-py311_0.conda
- pypi: https://x/einops-0.8.0-py3-none-any.whl
  name: einops
  version: 0.8.0
  sha256: {SHA}
""",
    "pixi.toml": """
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64"]
[dependencies]
python = {version = "==3.11.7", build = "h0_cpython"}
numpy = "==2.1.0"
scipy = ">=1.10,<2"
[pypi-dependencies]
einops = "==0.8.0"
""",
    "uv.lock": f"""
version = 1
requires-python = ">=3.11"
[[package]]
name = "mine"
version = "0.1"
source = {{ virtual = "." }}
dependencies = [
  {{ name = "numpy" }}, {{ name = "colorama", marker = "sys_platform == 'win32'" }}, {{ name = "a", extra = ["x"] }},
]
[package.dev-dependencies]
dev = [{{ name = "einops" }}]
[[package]]
name = "numpy"
version = "2.1.0"
source = {{ registry = "https://pypi.org/simple" }}
wheels = [{{ url = "https://x/numpy-2.1.0-cp311-cp311-linux_x86_64.whl", hash = "sha256:{SHA}", size = 1 }}]
[[package]]
name = "colorama"
version = "0.4"
source = {{ registry = "https://pypi.org/simple" }}
[[package]]
name = "a"
version = "1"
source = {{ registry = "https://pypi.org/simple" }}
[package.optional-dependencies]
x = [{{ name = "b" }}]
[[package]]
name = "b"
version = "2"
source = {{ git = "https://github.com/x/b?rev=v2#abc" }}
[[package]]
name = "einops"
version = "0.8.0"
source = {{ registry = "https://pypi.org/simple" }}
""",
    "pylock.toml": f"""
lock-version = "1.0"
requires-python = ">=3.11"
[[packages]]
name = "numpy"
version = "2.1.0"
wheels = [{{name = "numpy-2.1.0-py3-none-any.whl", url = "https://x/n.whl", hashes = {{sha256 = "{SHA}"}}}}]
[[packages]]
name = "einops"
version = "0.8.0"
sdist = {{name = "einops-0.8.0.tar.gz", hashes = {{sha256 = "{SHA}"}}}}
[[packages]]
name = "colorama"
version = "0.4"
marker = "sys_platform == 'win32'"
[[packages]]
name = "b"
vcs = {{type = "git", url = "https://github.com/x/b", commit-id = "abc"}}
""",
    "requirements.txt": f"""
--index-url https://pypi.org/simple
numpy==2.1.0 \\
    --hash=sha256:{SHA} \\
    --hash=sha256:{"c" * 64}
einops == 0.8.0  # why
colorama==0.4 ; sys_platform == "win32"
-e ./lib/mine
b @ git+https://github.com/x/b@abc
""",
}


def read(name: str, folder: Path, text: str | None = None) -> Listing:
    (folder / name).write_text(LOCKS[name] if text is None else text)
    return listing_at(folder / name, "3.11.7")


def of(listing: Listing) -> dict[str, tuple[str, ...]]:
    return {pin.name: (pin.manager, pin.version or pin.spec or pin.url, pin.build) for pin in listing.pins}


def test_what_locks_contain(tmp_path: Path) -> None:
    conda = {"python": ("conda", "3.11.7", "h0_cpython"), "numpy": ("conda", "2.1.0", "py311_0")}
    einops = {"einops": ("pip", "0.8.0", "")}
    specs = {"scipy": ("conda", ">=1.10,<2", "")}
    assert of(read("environment.yml", tmp_path)) == {**conda, **specs, "zlib": ("conda", "1.3.*", ""), **einops}
    assert of(read("explicit.txt", tmp_path)) == conda
    assert of(read("list.txt", tmp_path)) == of(read("environment.json", tmp_path)) == {**conda, **einops}
    assert of(read("conda-lock.yml", tmp_path)) == {**conda, **einops}
    assert of(read("pixi.lock", tmp_path)) == {**conda, **einops}
    assert of(read("pixi.toml", tmp_path)) == {**conda, "numpy": ("conda", "2.1.0", ""), **specs, **einops}
    numpy = {"numpy": ("pip", "2.1.0", "")}
    extras = {"a": ("pip", "1", ""), "b": ("pip", "2", "")}
    assert of(read("uv.lock", tmp_path)) == {**numpy, **einops, **extras}
    commit = {"b": ("pip", "git+https://github.com/x/b@abc", "")}
    assert of(read("pylock.toml", tmp_path)) == {**numpy, **einops, **commit}
    assert of(read("requirements.txt", tmp_path)) == {**numpy, **einops, **commit, "mine": ("pip", "./lib/mine", "")}


def test_hashes_channels_and_what_draws_in_more(tmp_path: Path) -> None:
    explicit = read("explicit.txt", tmp_path)
    assert [pin.hashes for pin in explicit.pins] == [(f"sha256:{SHA}",), (f"md5:{'b' * 32}",)]
    assert explicit.channels == ("conda-forge",) and explicit.platform == HERE and explicit.complete
    assert read("requirements.txt", tmp_path).pins[0].hashes == (f"sha256:{SHA}", f"sha256:{'c' * 64}")
    assert read("uv.lock", tmp_path).of("pip")[0].manager == "pip"
    assert not read("environment.yml", tmp_path).complete and not read("pixi.toml", tmp_path).complete
    assert read("pixi.lock", tmp_path).python == "3.11.7" and read("pixi.lock", tmp_path).channels == ("conda-forge",)


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("uv.lock", "version = 1\n", "version = 7\n", "version 7"),
        ("pixi.lock", "version: 6", "version: 99", "version 99"),
        ("conda-lock.yml", "version: 1\n", "version: 3\n", "version 3"),
        ("pylock.toml", '"1.0"', '"2.0"', "version 2.0"),
        ("pixi.lock", HERE, "osx-64", "not for"),
        ("uv.lock", "[[package]]", "[[package]", "damaged uv.lock"),
        ("pylock.toml", "name = ", "title = ", "damaged pylock.toml: the key 'name' is missing"),
        ("environment.yml", "dependencies:", "needs:", "no list `dependencies`"),
        ("environment.yml", "name: x", "name: [x", r"damaged environment.yml: .+ in line \d+$"),
        ("explicit.txt", "python-3.11.7-h0_cpython.conda", "python.exe", "is not an archive"),
        ("requirements.txt", "einops == 0.8.0", "einops === = 0.8", "is not a requirement"),
        ("conda-lock.yml", "package:", "package: 5\nrest:", "conda-lock.yml: a value does not have the type"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(name: str, before: str, after: str, words: str, tmp_path: Path) -> None:
    assert before in LOCKS[name]
    with pytest.raises(ConfigError, match=words) as told:
        read(name, tmp_path, LOCKS[name].replace(before, after))
    assert name in str(told.value)


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_cut_off_anywhere_never_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    text = LOCKS[name]
    for end in range(0, len(text), 7):
        try:
            read(name, tmp_path, text[:end])
        except ConfigError as error:
            assert name in str(error)


def test_other_files_are_no_locks(tmp_path: Path) -> None:
    for name, content in (
        ("x.lock", b"a"),
        ("x.bin", b"\xff\xfe"),
        ("x.json", b"[]"),
        ("y.json", b"{"),
        ("z.json", b"{}"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match=name):
            listing_at(tmp_path / name)
    (tmp_path / "v.json").write_text('{"environment_snapshot": 9}')
    with pytest.raises(ConfigError, match="version 9"):
        listing_at(tmp_path / "v.json")
    (tmp_path / "d.json").write_text('{"environment_snapshot": 1, "packages": [1]}')
    with pytest.raises(ConfigError, match="damaged"):
        listing_at(tmp_path / "d.json")
    with pytest.raises(ConfigError, match="no environment"):
        listing_at(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        listing_at(tmp_path / "nowhere.txt")


# ---- differences


def two(folder: Path) -> tuple[Environment, Environment]:
    """The same packages under two paths."""
    made = []
    for name in ("first", "second"):
        one = Environment(folder / name / "env", "conda")
        one.conda_project("numpy", "2.1.0")
        one.conda("zlib", "1.3")
        one.project("einops", "0.8.0")
        made.append(one)
    return made[0], made[1]


def differences(first: Environment, second: Environment) -> list[tuple[str, str]]:
    found = compare(listing_at(first.prefix), listing_at(second.prefix))
    return [(one.name, one.what) for one in found if one.kind == "package"]


def test_two_of_the_same_packages_are_one_environment(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    assert differences(first, second) == []
    snapshots = [snapshot_of(read_environment(one.prefix)) for one in (first, second)]
    assert snapshots[0]["fingerprint"] == snapshots[1]["fingerprint"]
    assert [pin["name"] for pin in snapshots[0]["packages"]] == ["numpy", "python", "zlib", "einops"]
    (tmp_path / "a.json").write_text(json.dumps(snapshots[0]))
    assert compare(listing_at(tmp_path / "a.json"), listing_at(second.prefix)) == []


def test_installers_and_paths_do_not_count_and_one_byte_does(tmp_path: Path) -> None:
    made = [Environment(tmp_path / name) for name in "abc"]
    made[0].project("x", installer="pip")
    made[1].project("x", installer="uv", origin={"url": "https://x/x.whl", "archive_info": {}})
    made[2].project("x", files={"x/__init__.py": b"# x 1.1\n"})
    record = made[1].site / "x-1.0.dist-info/RECORD"
    record.write_text(record.read_text() + "../../../bin/x,sha256=AAAA,9\nx/__pycache__/y.pyc,,\n")
    prints = [snapshot_of(read_environment(one.prefix))["fingerprint"] for one in made]
    assert prints[0] == prints[1] != prints[2]
    assert [(one.name, one.what) for one in compare(*(listing_at(made[i].prefix) for i in (0, 2)))] == [
        ("x", "content")
    ]


def test_what_conda_records_of_an_archive_does_not_count_and_its_files_do(tmp_path: Path) -> None:
    """Clones and lists of @EXPLICIT with MD5 have no SHA-256; conda and py-rattler report paths of noarch packages
    differently.
    """
    made = [Environment(tmp_path / name, "conda") for name in "abcd"]
    metas = [one.conda_project("click", "8.1.7", noarch=i < 2) for i, one in enumerate(made)]
    metas[1].write_text(json.dumps({**json.loads(metas[1].read_text()), "sha256": None, "md5": "b" * 32}))
    value = {**json.loads(metas[2].read_text()), "sha256": SHA}  # packed anew
    value["paths_data"]["paths"] += [
        {"_path": "bin/click", "path_type": "unix_python_entry_point", "sha256": SHA},
        {"_path": "lib/click.pyc", "path_type": "pyc_file", "sha256": SHA},
        {"_path": "bin/clack", "path_type": "softlink", "sha256": SHA},
    ]
    metas[2].write_text(json.dumps(value))
    metas[3].write_text(metas[3].read_text().replace('"size_in_bytes"', '"sha256": "' + SHA + '", "size_in_bytes"', 1))
    prints = [snapshot_of(read_environment(one.prefix))["fingerprint"] for one in made]
    assert prints[0] == prints[1] == prints[2] != prints[3]
    assert [differences(made[0], other) for other in made[1:]] == [[], [], [("click", "content")]]


def test_each_difference_by_its_kind(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    second.project("extra", "1.0")
    first.project("gone", "1.0")
    first.conda("jpeg", "9", build="h1_0")
    second.conda("jpeg", "9", build="h2_0")
    first.conda("png", "1", channel="conda-forge")
    second.conda("png", "1", channel="pkgs/main")
    first.conda("tiff", "4.1")
    second.conda("tiff", "4.2")
    first.conda_project("pandas", "2.0")
    second.project("pandas", "2.0")
    expected = [("extra", "added"), ("gone", "missing"), ("jpeg", "build"), ("pandas", "manager"), ("png", "channel")]
    assert sorted(differences(first, second)) == [*expected, ("tiff", "version")]


def test_an_archive_of_another_hash_differs(tmp_path: Path) -> None:
    made = Environment(tmp_path / "env", "conda")
    made.conda("zlib", "1.3")
    right = next(pin.sha256 for pin in listing_at(made.prefix).pins if pin.name == "zlib")
    for digest, expected in ((f"sha256:{right}", []), (f"sha256:{SHA}", ["hash"]), ("b" * 32, [])):  # md5 is not given
        lines = f"{URL}/{HERE}/python-3.11.7-h0_cpython.conda\n{URL}/{HERE}/zlib-1.3-h1_0.conda#{digest}\n"
        (tmp_path / "explicit.txt").write_text(f"@EXPLICIT\n{lines}")
        found = compare(listing_at(tmp_path / "explicit.txt"), listing_at(made.prefix))
        assert [one.what for one in found] == expected


def test_facts_of_the_machine_differ_between_snapshots(tmp_path: Path) -> None:
    made = Environment(tmp_path / "env")
    one = snapshot_of(read_environment(made.prefix, variables={"OMP_NUM_THREADS": "1"}))
    other = {**one, "variables": {"OMP_NUM_THREADS": "8"}, "driver": "580.65.06"}
    for name, value in (("one.json", one), ("other.json", other)):
        (tmp_path / name).write_text(json.dumps(value))
    found = compare(listing_at(tmp_path / "one.json"), listing_at(tmp_path / "other.json"))
    assert [(each.name, each.first, each.second) for each in found] == [
        ("driver", None, "580.65.06"),
        ("variables: OMP_NUM_THREADS", "1", "8"),
    ]


def test_run_records_hold_the_fingerprint() -> None:
    from feedline.record.files import envelope

    record = envelope("bench", ["feedline"], "x")
    assert record["software"]["environment_fingerprint"] == own_fingerprint() and len(own_fingerprint()) == 32
