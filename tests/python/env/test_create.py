# SPDX-License-Identifier: Apache-2.0
"""An environment created from an export in any form equals the original; a failed creation leaves nothing."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import site
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_channels import Channel, serving, wheel

import feedline
from feedline.cli.root import run
from feedline.env.create import caches, homes, pip_part
from feedline.env.create.named import listing_of_names
from feedline.env.create.pip_part import uv_program
from feedline.env.create.plan import plan_of, python_for
from feedline.env.differences import compare
from feedline.env.load import listing_at
from feedline.env.locks.listing import Listing, Pin
from feedline.env.reading.place import platform_name
from feedline.errors import ConfigError

pytest.importorskip("rattler", reason="py-rattler is not installed")
needs_uv = pytest.mark.skipif(uv_program() is None, reason="uv is not installed")
NAME = "vision_torch2.9_cpu"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEEDLINE_ENVIRONMENTS", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))  # no package of another test's channel
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    for name in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS", "XDG_DATA_HOME", "LD_LIBRARY_PATH", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    wheel(folder, "aa", "1.0", requires=("bb>=2",))
    wheel(folder, "bb", "2.0")
    wheel(folder, "bb", "2.5")
    wheel(folder, "bb", "3.0")
    return folder


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    made = Channel(tmp_path / "channel")
    made.add("libz", "1.2")
    made.add("libz", "1.3")
    made.add("libz", "2.0")
    made.add("tool", "1.0", depends=("libz >=1.2",))
    return made


def env(*arguments: str | Path) -> int:
    return run(["env", *map(str, arguments)])


def a_venv(wheels: Path, tmp_path: Path, name: str = NAME) -> Path:
    lock = tmp_path / "first.txt"
    lock.write_text("aa==1.0\nbb==2.0\n")
    assert env("create", name, "--from", lock, "--find-links", wheels, "--no-index") == 0
    return tmp_path / "home" / name


def a_conda(channel: Channel, tmp_path: Path) -> Path:
    lock = tmp_path / "environment.yml"
    lock.write_text(f"channels: ['{channel.url}']\ndependencies: [tool, libz=1.2]\n")
    assert env("create", NAME, "--from", lock) == 0
    return tmp_path / "home" / NAME


@needs_uv
def test_every_form_of_a_venv_is_made_again_to_the_same_fingerprint(wheels: Path, tmp_path: Path) -> None:
    first = a_venv(wheels, tmp_path)
    ran = subprocess.run([first / "bin/aa-run"], capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n"
    snapshot = tmp_path / "snapshot.json"
    assert env("snapshot", "--prefix", first, "--snapshot-file", snapshot) == 0
    wanted = json.loads(snapshot.read_text())["fingerprint"]
    forms = {
        "requirements": "requirements.txt",
        "pylock": "pylock.toml",
        "pixi": "pixi.toml",
        "environment.yml": "e.yml",
    }
    for form, name in forms.items():
        file = tmp_path / name
        where = ("--find-links", wheels, "--no-index")
        assert env("export", "--to", form, "--from", snapshot, "--export-file", file, *where) == 0
        if form in ("pixi", "environment.yml"):  # if Python comes from conda, only the projects are compared
            assert [pin.name for pin in listing_at(file).of("pip")] == ["aa", "bb"]
            continue
        second = tmp_path / "again" / form / "x"
        assert env("create", second, "--from", file, *where) == 0
        made = json.loads((second / "feedline-environment.json").read_text())
        assert made["fingerprint"] == wanted, form
        assert env("diff", snapshot, second) == 0
    assert all(pin.sha256 for pin in listing_at(tmp_path / "requirements.txt").pins)
    assert env("create", "from_snapshot_cpu", "--from", snapshot, *where) == 0


def test_every_form_of_conda_packages_is_made_again_to_the_same_fingerprint(channel: Channel, tmp_path: Path) -> None:
    first = a_conda(channel, tmp_path)
    assert (first / "share/libz.txt").read_text() == "libz 1.2 h1_0\n"
    assert str(first) in (first / "bin/tool-run").read_text()
    snapshot = tmp_path / "snapshot.json"
    assert env("snapshot", "--prefix", first, "--snapshot-file", snapshot) == 0
    wanted = json.loads(snapshot.read_text())
    assert [(one["name"], one["version"]) for one in wanted["packages"]] == [("libz", "1.2"), ("tool", "1.0")]
    channel.add("tool", "1.1", depends=("libz >=1.2",))  # later releases do not change the result
    for form, name in {"environment.yml": "e.yml", "explicit": "explicit.txt", "pixi": "pixi.toml"}.items():
        file = tmp_path / name
        assert env("export", "--to", form, "--from", first, "--export-file", file) == 0
        second = tmp_path / "again" / form / "x"
        assert env("create", second, "--from", file) == 0
        assert json.loads((second / "feedline-environment.json").read_text())["fingerprint"] == wanted["fingerprint"]
        assert compare(listing_at(snapshot), listing_at(second)) == []
    assert env("create", "from_snapshot_cpu", "--from", snapshot) == 0


@needs_uv
def test_pip_does_what_uv_does(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = pytest.importorskip("pip", reason="pip is not installed")
    if tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3):
        pytest.skip("pip has no --python before 22.3")
    first = a_venv(wheels, tmp_path)
    monkeypatch.setattr("feedline.env.create.pip_part.uv_program", lambda: None)
    second = a_venv(wheels, tmp_path, "by_pip_cpu")
    made = [json.loads((one / "feedline-environment.json").read_text()) for one in (first, second)]
    assert made[0]["fingerprint"] == made[1]["fingerprint"]


@needs_uv
def test_research_takes_minor_updates_and_product_none(
    wheels: Path, channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = tmp_path / "snapshot.json"
    env("snapshot", "--prefix", a_venv(wheels, tmp_path), "--snapshot-file", snapshot)
    where = ("--find-links", wheels, "--no-index", "--policy", "research", "--json")
    capsys.readouterr()
    assert env("create", "research_cpu", "--from", snapshot, *where) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["differences"] == ["bb is 2.5 instead of 2.0"] and not told["equal"] and told["sound"]
    shutil.rmtree(tmp_path / "home")
    env("snapshot", "--prefix", a_conda(channel, tmp_path), "--snapshot-file", snapshot)
    capsys.readouterr()
    assert env("create", "research_cpu", "--from", snapshot, "--policy", "research", "--json") == 0
    assert json.loads(capsys.readouterr().out)["differences"] == ["libz is 1.3 instead of 1.2"]


@needs_uv
def test_what_cannot_be_made_leaves_nothing(wheels: Path, channel: Channel, tmp_path: Path, home: Path) -> None:
    where = ("--find-links", wheels, "--no-index")
    for lock, status in {
        "aa==9.9\n": 3,  # nobody has it
        f"bb==2.0 --hash=sha256:{'0' * 64}\n": 3,  # another archive
        "aa==1.0\n": 1,  # bb is missing: created, but with a fault
    }.items():
        file = tmp_path / "lock.txt"
        file.write_text(lock)
        assert env("create", "broken_x_cpu", "--from", file, *where) == status, lock
        assert (home / "broken_x_cpu").exists() == (status == 1)
    (tmp_path / "e.yml").write_text(f"channels: ['{channel.url}']\ndependencies: [tool, libz>=9]\n")
    assert env("create", "conda_x_cpu", "--from", tmp_path / "e.yml") == 2
    (tmp_path / "e.yml").write_text(f"channels: ['{channel.url}/nowhere']\ndependencies: [tool]\n")
    assert env("create", "conda_x_cpu", "--from", tmp_path / "e.yml") in (2, 3)
    assert not (home / "conda_x_cpu").exists()
    (home / "broken_x_cpu/mine").write_text("kept")
    assert env("create", "broken_x_cpu", "--from", file, *where) == 2, "it is there already"
    assert (home / "broken_x_cpu/mine").read_text() == "kept"


@needs_uv
def test_conda_packages_and_projects_of_pip_are_made_together(
    channel: Channel, wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both parts of an environment.yml, with the pip part in conda's own Python; and again, from an export of the
    result.
    """
    channel.add_python()
    lock, where = tmp_path / "mixed.yml", ("--find-links", wheels, "--no-index")
    lock.write_text(
        f"channels: ['{channel.url}']\ndependencies: [python, tool=1.0, libz=1.3, pip: ['aa==1.0', 'bb==2.5']]\n"
    )
    made = tmp_path / "home/mixed_x_cpu"
    assert env("create", "mixed_x_cpu", "--from", lock, *where) == 0
    ran = subprocess.run([made / "bin/aa-run"], capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n" and (made / "share/libz.txt").read_text() == "libz 1.3 h1_0\n"
    assert env("check", "--prefix", made) == 0
    snapshot, yml = tmp_path / "snapshot.json", tmp_path / "again.yml"
    assert env("snapshot", "--prefix", made, "--snapshot-file", snapshot) == 0
    held = {(one["name"], one["manager"]) for one in json.loads(snapshot.read_text())["packages"]}
    assert held == {("aa", "pip"), ("bb", "pip"), ("libz", "conda"), ("python", "conda"), ("tool", "conda")}
    channel.add("libz", "1.4")
    wheel(wheels, "bb", "2.9")
    assert env("export", "--to", "environment.yml", "--from", made, "--export-file", yml) == 0
    again = tmp_path / "home/again_x_cpu"
    assert env("create", "again_x_cpu", "--from", yml, *where) == 0
    capsys.readouterr()
    assert env("diff", made, again) == 0, capsys.readouterr().out
    assert env("diff", snapshot, again) == 0
    site = next(again.glob("lib/python3.*/site-packages"))
    (site / "aa/__init__.py").write_text("changed by hand\n")
    (again / "share/libz.txt").write_text("changed by hand\n")
    capsys.readouterr()
    assert env("check", "--prefix", again, "--json") == 1
    altered = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["code"] == "altered_files"]
    assert "aa" in str(altered) and "libz" in str(altered), "of either manager"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("[tool, nowhere]", "{first} and {second} have no nowhere"),
        ("[libz=9]", "libz 9.* was not found: {first} has 2.0, 1.3, 1.2; {second} has 1.1"),
        ("[libz==1.9]", "libz 1.9 was not found"),
        ("[tool=1.0, gone>=2, libz]", "gone >=2 was not found: {second} has 1.0"),
    ],
)
def test_what_channels_lack_is_reported_channel_by_channel(
    wanted: str, told: str, channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Channel(tmp_path / "other")
    other.add("gone", "1.0")
    other.add("libz", "1.1")
    lock = tmp_path / "environment.yml"
    lock.write_text(f"channels: ['{channel.url}', '{other.url}']\ndependencies: {wanted}\n")
    capsys.readouterr()
    assert env("create", NAME, "--from", lock) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert told.format(first=channel.url, second=other.url) in error, error
    assert not (tmp_path / "home" / NAME).exists()


def test_packages_that_exclude_each_other_are_reported_in_the_solvers_words(
    channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.add("late", "1.0", depends=("libz >=2",))
    lock = tmp_path / "environment.yml"
    lock.write_text(f"channels: ['{channel.url}']\ndependencies: [late, libz=1.2]\n")
    assert env("create", NAME, "--from", lock) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "late" in error and "libz" in error and "└" not in error and "has no" not in error


def test_another_archive_under_the_same_name_is_refused(
    channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = a_conda(channel, tmp_path)
    explicit = tmp_path / "explicit.txt"
    assert env("export", "--to", "explicit", "--from", first, "--export-file", explicit) == 0
    channel.add("libz", "1.2", text="something else\n")
    assert env("create", "second_x_cpu", "--from", explicit) == 2
    assert "the archives differ" in capsys.readouterr().err
    assert not (tmp_path / "home/second_x_cpu").exists()


def test_a_lock_of_another_platform_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "explicit.txt"
    lock.write_text("# platform: osx-arm64\n@EXPLICIT\nhttps://x/osx-arm64/a-1-0.conda\n")
    assert env("create", NAME, "--from", lock) == 2
    assert "osx-arm64" in capsys.readouterr().err


@needs_uv
def test_list_and_clean(
    wheels: Path, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = a_venv(wheels, tmp_path)
    other = a_venv(wheels, tmp_path, "scratch")
    assert "does not have the form <project>_<framework>_<device>" in " ".join(capsys.readouterr().out.split())
    assert env("list", "--json") == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)["environments"]}
    assert set(listed) == {NAME, "scratch"} and listed[NAME]["by_rule"] and not listed["scratch"]["by_rule"]
    assert listed[NAME]["bytes"] > 1000 and listed[NAME]["pids"] == []
    busy = subprocess.Popen([other / "bin/python", "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    try:
        assert busy.stdout is not None and busy.stdout.readline() == b"\n"
        assert env("clean", "scratch", "--yes") == 2
        assert "in use by process" in capsys.readouterr().err and other.exists()
    finally:
        busy.communicate(b"\n")
    monkeypatch.setattr("click.confirm", lambda _: False)
    assert env("clean", "scratch") == 1 and other.exists(), "it asks"
    assert env("list") == 0 and "today" in capsys.readouterr().out
    assert env("clean", "scratch", made, "--yes") == 0
    assert not other.exists() and not made.exists() and home.exists()
    assert env("clean", "scratch", "--yes") == 2
    assert env("clean", sys.base_prefix, "--yes") == 2, "the machine's own"


@needs_uv
def test_names_of_packages_make_an_environment(
    wheels: Path, channel: Channel, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ".".join(map(str, sys.version_info[:2]))
    assert env("create", NAME, f"python={own}", "aa", "bb=2.0", "--find-links", wheels, "--no-index", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert list(made["seconds"]) == ["the interpreter", "pip projects", "check"]
    assert all(seconds >= 0 for seconds in made["seconds"].values()) and made["channels"] == []
    pins = {pin.name: pin.version for pin in listing_at(home / NAME).pins}
    assert (pins["aa"], pins["bb"]) == ("1.0", "2.0")
    assert env("create", "of_conda_cpu", "tool", "libz=1.3", "--channel", channel.url) == 0
    shown = capsys.readouterr().out
    assert "conda packages" in shown and "check" in shown and Path(channel.url).name in shown
    assert {pin.name: pin.version for pin in listing_at(home / "of_conda_cpu").pins} == {"tool": "1.0", "libz": "1.3"}


def test_channels_over_http_and_the_time_of_their_indexes(
    channel: Channel, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(channel.folder, index_s=0.3) as (url, requested):
        assert env("create", NAME, "tool", "libz=1.3", "--channel", url, "--json") == 0
        made = json.loads(capsys.readouterr().out)
        assert any(path.endswith("/repodata.json") for path in requested)
        assert any(path.endswith("/libz-1.3-h1_0.tar.bz2") for path in requested)
        assert list(made["seconds"]) == ["channel indexes", "conda packages", "pip projects", "check"]
        assert made["seconds"]["channel indexes"] >= 0.3
        assert list(made["channels"]) == [url]
        assert env("check", "--prefix", home / NAME) == 1, "only because conda installed no Python"
        assert f"channels: {url} (2)" in capsys.readouterr().out.replace("\n", "")
        assert env("create", "lacking_x_cpu", "tool", "nowhere", "--channel", url) == 2
        assert f"{url} has no nowhere" in " ".join(capsys.readouterr().err.split())
    assert env("create", "gone_x_cpu", "tool=1.0", "--channel", url.replace("127.0.0.1", "localhost")) == 3
    assert "localhost" in capsys.readouterr().err and sorted(path.name for path in home.iterdir()) == [NAME]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "pass either --from FILE or packages"),
        (("aa", "--from", "x.txt"), "pass either --from FILE or packages"),
        (("python=3.11",), "names no packages besides python"),
        (("python>=3.11", "aa"), "must be python or python=VERSION"),
        (("aa==",), "'aa==' is not a requirement"),
        (("aa bb",), "'aa bb' is not a requirement"),
    ],
)
def test_names_that_cannot_be_read(
    words: tuple[str, ...], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert env("create", NAME, *words) == 2
    assert said in " ".join(capsys.readouterr().err.split()) and not home.exists()


def test_research_keeps_the_build_of_a_wheel() -> None:
    pins = (Pin("torch", "pip", "2.9.0+cu126"), Pin("numpy", "pip", "2.1.0"), Pin("libz", "conda", "1.2"))
    plan = plan_of(Listing("x", "snapshot", pins), "research")
    assert plan.requirements == ["torch==2.9.0+cu126", "numpy>=2.1.0,<3"] and plan.conda_specs[0] == "libz >=1.2,<2"
    assert plan.index_options == ["--extra-index-url", "https://download.pytorch.org/whl/cu126"]
    assert any("torch 2.9.0+cu126" in note for note in plan.notes)


def test_what_guides_request_of_conda_is_explained() -> None:
    listing = listing_of_names(["python=3.9", "pytorch", "pytorch-cuda=11.8"], ["pytorch", "nvidia"])
    assert (listing.python, listing.channels) == ("3.9", ("pytorch", "nvidia"))
    notes = " ".join(plan_of(listing, "product", listing.channels).notes)
    assert "the channel pytorch ended with torch 2.5" in notes and "pytorch-gpu and cuda-version" in notes


def a_home(home: Path, name: str, used_days_ago: float) -> Path:
    """A virtual environment that was last used this long ago."""
    folder = home / name
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    used = time.time() - used_days_ago * 86_400
    os.utime(folder / "pyvenv.cfg", (used, used - 86_400))
    return folder


def test_stale_environments_are_marked_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = a_home(home, "old_torch_cpu", 200), a_home(home, "new_torch_cpu", 20)
    assert env("list", "--json") == 0
    listed = {one["name"]: one["stale"] for one in json.loads(capsys.readouterr().out)["environments"]}
    assert listed == {"old_torch_cpu": True, "new_torch_cpu": False}
    assert env("list") == 0
    assert "1 not used for 180 days: feedline env clean --stale" in " ".join(capsys.readouterr().out.split())
    assert env("clean", "--stale", "--stale-days", "300", "--yes") == 0 and old.exists()
    assert env("clean", "--stale", "--yes") == 0
    assert not old.exists() and new.exists()


def test_package_caches_are_listed_and_emptied(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CONDA_EXE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("CONDA_PKGS_DIRS", str(tmp_path / "pkgs"))
    monkeypatch.delenv("PIP_CACHE_DIR", raising=False)
    monkeypatch.setattr("feedline.env.create.caches._programs", lambda proc: iter(running))
    running: list[tuple[int, str]] = []
    files = {tmp_path / "caches/pip/http/x": "pip", tmp_path / "uv/wheels/y": "uv", tmp_path / "pkgs/z.conda": "conda"}
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"x" * 9000)
    assert env("list", "--json") == 0
    found = {one["tool"]: one["bytes"] for one in json.loads(capsys.readouterr().out)["caches"]}
    assert found.keys() == {"pip", "uv", "conda"} and all(size >= 9000 for size in found.values())
    running.append((4711, "conda"))
    assert env("clean", "--caches", "--yes") == 2
    assert "may be in use by conda (process 4711)" in " ".join(capsys.readouterr().err.split())
    running.clear()
    assert env("clean", "--caches", "--yes") == 0
    assert not any(file.exists() for file in files) and (tmp_path / "pkgs").is_dir()
    assert env("clean", "--caches", "--yes") == 0 and "nothing to remove" in capsys.readouterr().out
    assert env("clean", "--yes") == 2


def test_checks_that_were_not_made_say_why(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = a_home(home, "vision_torch_cpu", 1)
    (made / "bin/python3").write_bytes(b"")
    (made / "lib/python3.11/site-packages").mkdir(parents=True)
    assert env("check", "--prefix", made, "--label", "python 3.11, torch 2.16, CUDA 13.2") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "cudnn_copies: not judged, because the check needs a running process: pass --pid" in shown
    assert "label_impossible: not judged, because torch 2.16 is not in the table of PyTorch's releases" in shown


def test_running_programs_are_found_by_name(tmp_path: Path) -> None:
    for pid, words in (
        ("41", "/usr/bin/python3\0-m\0pip\0install"),
        ("42", "/opt/conda/bin/conda\0update"),
        ("43", ""),
    ):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cmdline").write_text(words)
    assert {(41, "pip"), (42, "conda")} <= set(caches._programs(tmp_path))
    cached = caches.Cache("pip", tmp_path, 1)
    with pytest.raises(ConfigError, match="process 41"):
        caches.empty(cached, tmp_path)


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("vision_torch2.9_cu128", True),
        ("a_b_cpu", True),
        ("vision", False),
        ("Vision_torch_cpu", False),
        ("a_b_c", False),
    ],
)
def test_the_rule_of_names(name: str, right: bool) -> None:
    assert homes.follows_rule(name) is right


@needs_uv
def test_a_dockerfile_holds_its_locks(
    wheels: Path, channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = a_venv(wheels, tmp_path)
    capsys.readouterr()
    assert env("export", "--to", "dockerfile", "--from", made, "--find-links", wheels, "--no-index") == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert any(line.startswith("FROM python:3.") and line.endswith("-slim-bookworm") for line in lines)
    assert "USER app" in lines and any("--shm-size" in line for line in lines) and ":latest" not in text
    assert any("pip install --no-cache-dir --require-hashes --no-deps" in line for line in lines)
    assert "<<" not in text  # here-documents need BuildKit, which Debian 12's docker and podman lack
    run = text[text.index("RUN printf") : text.index(" && pip install")]  # as run by the shell of `docker build`
    subprocess.run(["sh", "-c", run[4:].replace("/tmp/requirements.txt", "of_docker.txt")], cwd=tmp_path, check=True)
    lock = tmp_path / "of_docker.txt"
    assert lock.read_text().count("--hash=sha256:") == 2
    assert env("create", "docker_x_cpu", "--from", lock, "--find-links", wheels, "--no-index") == 0
    assert env("diff", made, tmp_path / "home/docker_x_cpu") == 0
    shutil.rmtree(made)
    capsys.readouterr()
    assert env("export", "--to", "dockerfile", "--from", a_conda(channel, tmp_path)) == 0
    text = capsys.readouterr().out
    assert "micromamba clean --all --yes" in text and f"# platform: {platform_name()}" in text


@needs_uv
def test_what_a_form_cannot_hold_is_reported(
    wheels: Path, tmp_path: Path, channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    made = a_venv(wheels, tmp_path)
    capsys.readouterr()
    assert env("export", "--to", "requirements", "--from", made, "--no-index") == 0
    told = capsys.readouterr()
    assert "aa 1.0 was not found on an index, so it has no hash" in " ".join(
        told.err.split()
    ) and "--hash" not in told.out.partition("\n\n")[0].replace("--require-hashes", "")
    assert env("export", "--to", "explicit", "--from", made) == 2
    assert env("export", "--to", "requirements", "--from", tmp_path / "first.txt") == 2
    site = next(made.glob("lib/python3.*/site-packages"))
    origin = {"url": "file:///home/ann/aa", "dir_info": {"editable": True}}
    (site / "aa-1.0.dist-info/direct_url.json").write_text(json.dumps(origin))
    assert env("export", "--to", "pixi", "--from", made) == 0
    told = capsys.readouterr()
    assert "which does not exist on other machines" in " ".join(told.err.split()) and "editable = true" in told.out


def test_hashes_by_an_index(tmp_path: Path, wheels: Path) -> None:
    """Both forms of a simple index, requested from a real server."""
    import http.server
    import threading

    from feedline.env.archives import Archives
    from feedline.env.locks.listing import Pin
    from feedline.env.reading.listed import sha256_of

    digest = sha256_of(wheels / "bb-2.0-py3-none-any.whl")
    page = f'<a href="../../bb-2.0-py3-none-any.whl#sha256={digest}">x</a><a href="bb-2.0.tar.gz#sha256=ab">s</a>'
    document = {"files": [{"filename": "bb-2.0.tar.gz", "url": "https://x/bb-2.0.tar.gz", "hashes": {"sha256": "ab"}}]}

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"/html/bb/": ("text/html", page), "/json/bb/": ("application/json", json.dumps(document))}
            kind, body = found.get(self.path, ("", ""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        pin = Pin("bb", "pip", "2.0", tags=("py3-none-any",))
        found = Archives([f"{base}/html"]).of(pin)
        assert found is not None and found.sha256 == digest and found.url == f"{base}/bb-2.0-py3-none-any.whl"
        source = Archives([f"{base}/json"]).of(pin)
        assert source is not None and source.sha256 == "ab"
        other = Archives([f"{base}/html"]).of(Pin("bb", "pip", "2.0", tags=("cp311-cp311-linux_x86_64",)))
        assert other is not None and other.name == "bb-2.0.tar.gz", "a wheel of other tags was not installed"
        assert Archives([f"{base}/html"]).of(Pin("cc", "pip", "2.0")) is None
        server.shutdown()


@needs_uv
def test_a_process_of_the_environment_is_looked_at(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = a_venv(wheels, tmp_path)
    capsys.readouterr()
    assert env("check", "--prefix", made, "--pid", os.getpid(), "--json") in (
        0,
        1,
    )  # 1: other tests have loaded modules here
    told = json.loads(capsys.readouterr().out)
    assert told["facts"]["process"] == f"process {os.getpid()}" and told["abstained"] == []
    assert env("check", "--prefix", made, "--pid", 2**22 + 5) == 3, "there is no such process"
    capsys.readouterr()
    assert env("check", "--prefix", made, "--lock", tmp_path / "first.txt") == 0
    assert "no problems found" in capsys.readouterr().out


def bare_python(tmp_path: Path) -> Path:
    """A Python that runs Feedline and has neither uv nor pip; its base interpreter has pip, or ensurepip."""
    prefix, linked = tmp_path / "bare", tmp_path / "linked"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    linked.mkdir()
    for place in (*site.getsitepackages(), os.path.dirname(os.path.dirname(feedline.__file__))):
        for one in Path(place).iterdir() if Path(place).is_dir() else ():
            if not re.match(r"(pip|uv)([-.]|$)", one.name) and one.suffix != ".pth":
                link = linked / one.name
                if not link.exists():
                    link.symlink_to(one.resolve())
    next(prefix.glob("lib/python3.*/site-packages")).joinpath("linked.pth").write_text(f"{linked}\n")
    return prefix / "bin/python"


def test_without_uv_and_pip_the_base_pythons_installs(wheels: Path, tmp_path: Path) -> None:
    pytest.importorskip("ensurepip", reason="this Python has no ensurepip")
    (tmp_path / "lock.txt").write_text("aa==1.0\nbb==2.0\n")
    code = "import sys; from feedline.cli import main; sys.exit(main())"
    words = ["env", "create", tmp_path / "made_x_cpu", "--from", tmp_path / "lock.txt", "--find-links", wheels]
    done = subprocess.run(
        [bare_python(tmp_path), "-c", code, *words, "--no-index"], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "made_x_cpu/bin/aa-run"], capture_output=True, text=True).stdout == "1.0\n"


@pytest.mark.parametrize(("pip", "ensurepip"), [("", True), ("pip 20.3.4 from x", True), ("", False)])
def test_an_own_pip_is_made_if_there_is_none_that_installs_elsewhere(
    pip: str, ensurepip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_program(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if command[1:3] == ["-m", "pip"]:
            return subprocess.CompletedProcess(command, 0 if pip else 1, pip, "No module named pip")
        assert command[1:3] == ["-m", "venv"]
        return subprocess.CompletedProcess(command, 0 if ensurepip else 1, "", "No module named ensurepip")

    monkeypatch.setattr(pip_part.subprocess, "run", run_program)
    if ensurepip:
        assert pip_part.pip_command(str(tmp_path)) == [str(tmp_path / "pip/bin/python"), "-m", "pip"]
    else:
        with pytest.raises(ConfigError, match="pip install uv"):
            pip_part.pip_command(str(tmp_path))


OWN = platform.python_version()
MINOR = sys.version_info.minor


@pytest.mark.parametrize(
    ("wanted", "policy", "python"),
    [
        ("", "product", ""),
        (f">=3.{MINOR - 1}", "product", OWN),  # this Python, not the lowest allowed one
        (f">=3.{MINOR},<4", "research", OWN),
        (f"==3.{MINOR}.*", "product", f"3.{MINOR}"),
        ("3.9.1", "product", "3.9.1"),
        ("3.9.1", "research", "3.9"),
        ("==3.9.1", "product", "3.9.1"),
        ("<3.10,>=3.8.4", "product", "3.9"),
        (">=3.8.4,<3.9", "product", "3.8"),
    ],
)
def test_the_python_of_a_range(wanted: str, policy: str, python: str) -> None:
    assert python_for(Listing("lock", "uv.lock", (), python=wanted), policy) == python


def test_no_python_in_a_range() -> None:
    with pytest.raises(ConfigError, match="no known version satisfies"):
        python_for(Listing("lock", "uv.lock", (), python=">=3.9,<3.9"), "product")


@needs_uv
def test_of_a_uv_lock_the_entry_of_the_new_python_is_installed(wheels: Path, tmp_path: Path) -> None:
    lock = tmp_path / "uv.lock"
    entries = "".join(
        f'[[package]]\nname = "bb"\nversion = "{version}"\nresolution-markers = ["python_full_version {marker}"]\n'
        for version, marker in {"2.0": f"< '3.{MINOR}'", "2.5": f"== '3.{MINOR}.*'", "3.0": f"> '3.{MINOR}.99'"}.items()
    )
    lock.write_text(
        'version = 1\nrequires-python = ">=3.10"\n[[package]]\nname = "demo"\nversion = "1"\n'
        f'source = {{ virtual = "." }}\ndependencies = [{{ name = "bb" }}]\n{entries}'
    )
    assert env("create", NAME, "--from", lock, "--find-links", wheels, "--no-index") == 0
    assert env("diff", tmp_path / "home" / NAME, lock) == 0
    found = {pin.name: pin.version for pin in listing_at(tmp_path / "home" / NAME).pins}
    assert found == {"bb": "2.5"}
