# SPDX-License-Identifier: Apache-2.0
"""pip accepts exported files: hashes for all projects or none, and indexes for builds that PyPI does not have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from made_channels import Channel, wheel
from made_environments import Environment

from feedline.cli.root import run
from feedline.env.load import listing_at
from feedline.env.reading.listed import sha256_of

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
TORCH = "https://download.pytorch.org/whl"
HASH = f"sha256:{'a' * 64}"


def exported(capsys: pytest.CaptureFixture[str], form: str, prefix: Path, *words: str | Path) -> tuple[str, str]:
    """Returns the file, and the notes as one line."""
    capsys.readouterr()
    assert run(["env", "export", "--to", form, "--from", str(prefix), *map(str, words)]) == 0
    told = capsys.readouterr()
    return told.out, " ".join(told.err.split())


def pip_part(text: str) -> str:
    """The lines as conda passes them to pip, one per line."""
    parts = [one for one in yaml.safe_load(text)["dependencies"] if isinstance(one, dict)]
    return "\n".join(parts[0]["pip"]) + "\n"


def pip(*words: str | Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("pip", reason="pip is not installed")
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--dry-run", "--ignore-installed"]
    return subprocess.run([*command, *map(str, words)], capture_output=True, text=True, check=False)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[str]:
    """An index with aa 1.0+cpu; the URL contains a login that is not needed."""
    folder = tmp_path / "index/aa"
    made = wheel(folder, "aa", "1.0+cpu")
    (folder / "index.html").write_text(f'<a href="{made.name}#sha256={sha256_of(made)}">{made.name}</a>')
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "index"))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://ann:secret@127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("form", ["requirements", "environment.yml"])
def test_hashes_are_of_all_projects_or_of_none(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel(tmp_path / "known", "aa", "1.0")
    wheel(tmp_path / "house", "bb", "1.0")
    archive = wheel(tmp_path / "house", "cc", "1.0")
    made = Environment(tmp_path / "env")
    made.project("aa")
    made.project("bb")
    origin = {"url": archive.as_uri(), "archive_info": {"hashes": {"sha256": sha256_of(archive)}}}
    made.project("cc", origin=origin)
    links = ("--find-links", tmp_path / "known", "--no-index")
    text, notes = exported(capsys, form, made.prefix, *links)
    lines = pip_part(text) if form == "environment.yml" else text
    assert re.findall(r"^(\w+)==1.0$", lines, re.MULTILINE) == ["aa", "bb", "cc"] and "--hash" not in lines
    assert (
        form == "environment.yml"
        or "no hashes are written, because pip requires hashes for all projects, and bb" in notes
    )
    (tmp_path / "lock.txt").write_text(lines)
    everything = ("--no-index", "--find-links", tmp_path / "known", "--find-links", tmp_path / "house")
    taken = pip(*everything, "-r", tmp_path / "lock.txt")
    assert taken.returncode == 0, taken.stderr
    text, notes = exported(capsys, "requirements", made.prefix, *links, "--find-links", tmp_path / "house")
    assert text.count("--hash=sha256:") == 3 and "no hashes" not in notes
    (tmp_path / "lock.txt").write_text(text)
    taken = pip(*everything, "--require-hashes", "--no-deps", "-r", tmp_path / "lock.txt")
    assert taken.returncode == 0, taken.stderr


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        ({"url": "https://x.org/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, "bb @ git+https://x.org/b@abc"),
        ({"url": "file:///home/ann/bb", "dir_info": {"editable": True}}, "-e /home/ann/bb"),
        ({"url": "file:///home/ann/bb", "dir_info": {}}, "bb @ file:///home/ann/bb"),
    ],
)
def test_what_cannot_have_a_hash_leaves_out_all(
    origin: dict[str, object], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(tmp_path / "known", "aa", "1.0")
    made = Environment(tmp_path / "env")
    made.project("aa")
    made.project("bb", origin=origin)
    for form in ("requirements", "dockerfile"):
        text, notes = exported(capsys, form, made.prefix, "--find-links", tmp_path / "known", "--no-index")
        assert line in text and "aa==1.0" in text and "--hash=" not in text and "--require-hashes" not in text
        assert "bb cannot have one" in notes


def test_an_archive_on_the_web_keeps_its_url_and_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://x.org/bb-1.0%2Bcpu-py3-none-any.whl"
    made = Environment(tmp_path / "env")
    made.project("bb", "1.0+cpu", origin={"url": url, "archive_info": {"hashes": {"sha256": "a" * 64}}})
    text, _ = exported(capsys, "requirements", made.prefix, "--no-index")
    assert f"bb @ {url} \\\n    --hash={HASH}\n" in text and "--extra-index-url" not in text
    assert pip_part(exported(capsys, "environment.yml", made.prefix, "--no-index")[0]) == f"bb @ {url}\n"
    assert f'url = "{url}"' in exported(capsys, "pylock", made.prefix, "--no-index")[0]
    assert f'{{url = "{url}"}}' in exported(capsys, "pixi", made.prefix)[0]


@pytest.mark.parametrize("label", ["cpu", "cu130", "rocm6.2", "xpu"])
def test_builds_with_pytorchs_labels_have_its_index(
    label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Environment(tmp_path / "env")
    made.torch(f"2.9.0+{label}", cuda=None)
    made.project("torchaudio", f"2.9.0+{label}")
    made.project("ours", "1.0+house")  # not in any known index
    option = f"--extra-index-url {TORCH}/{label}"
    text, notes = exported(capsys, "requirements", made.prefix, "--no-index")
    assert text.splitlines().count(option) == 1 and "unsafe-best-match" in text and "ours 1.0+house" in notes
    lock = tmp_path / "requirements.txt"
    lock.write_text(text)
    assert listing_at(lock).index_options == ("--extra-index-url", f"{TORCH}/{label}")
    text, _ = exported(capsys, "environment.yml", made.prefix, "--no-index")
    assert pip_part(text).splitlines()[0] == option and any(
        str(one).startswith("pip") for one in yaml.safe_load(text)["dependencies"]
    )
    lock = tmp_path / "environment.yml"
    lock.write_text(text)
    assert listing_at(lock).index_options == ("--extra-index-url", f"{TORCH}/{label}")
    assert option in exported(capsys, "dockerfile", made.prefix, "--no-index")[0]
    text, _ = exported(capsys, "pixi", made.prefix)
    assert f'"torch" = {{version = "==2.9.0+{label}", index = "{TORCH}/{label}"}}' in text


def test_an_index_that_has_the_archives_is_written_without_its_login(
    house: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Environment(tmp_path / "env")
    made.project("aa", "1.0+cpu")
    text, notes = exported(capsys, "requirements", made.prefix, "--index-url", house)
    public = house.replace("ann:secret@", "")
    assert f"\n--index-url {public}\n" in text and TORCH not in text and "--hash=sha256:" in text
    assert "secret" not in text + notes and "the user name and password for" in notes
    (tmp_path / "lock.txt").write_text(text)
    taken = pip("--require-hashes", "-r", tmp_path / "lock.txt")
    assert taken.returncode == 0, taken.stderr
    assert run(["env", "create", str(tmp_path / "again"), "--from", str(tmp_path / "lock.txt")]) == 0
    text, _ = exported(capsys, "pylock", made.prefix, "--index-url", house)
    assert listing_at_pylock(text, tmp_path)


def test_the_layer_of_a_dockerfile_installs(house: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the shell command of the layer, as `docker build` does, in an empty environment with pip."""
    pytest.importorskip("pip", reason="pip is not installed")
    made = Environment(tmp_path / "env")
    made.project("aa", "1.0+cpu")
    text, _ = exported(capsys, "dockerfile", made.prefix, "--index-url", house)
    (run_line,) = re.findall(r"^RUN (printf .*?)(?=\nRUN|\nWORKDIR)", text, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "image"], check=True)
    layer = run_line.replace("/tmp/requirements.txt", str(tmp_path / "requirements.txt"))
    environment = {"PATH": f"{tmp_path}/image/bin:/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"}
    ran = subprocess.run(["sh", "-c", layer], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--require-hashes" in layer
    assert subprocess.run([tmp_path / "image/bin/aa-run"], capture_output=True, text=True).stdout == "1.0+cpu\n"


def listing_at_pylock(text: str, folder: Path) -> tuple[str, ...]:
    (folder / "pylock.toml").write_text(text)
    return listing_at(folder / "pylock.toml").pins[0].hashes


def test_pylock_without_an_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Environment(tmp_path / "env")
    made.project("aa")
    assert run(["env", "export", "--to", "pylock", "--from", str(made.prefix), "--no-index"]) == 2
    assert "aa has none" in " ".join(capsys.readouterr().err.split())


def test_conda_without_pip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """conda adds pip to an environment.yml by itself; a Dockerfile must do so."""
    made = Environment(tmp_path / "env", "conda")
    made.project("aa")
    for form in ("environment.yml", "dockerfile"):
        text, notes = exported(capsys, form, made.prefix, "--no-index")
        assert "this environment has no pip" in notes
    installs = [line for line in text.splitlines() if re.match(r"(RUN| &&) \w.* install ", line)]
    assert [line.endswith("--freeze-installed pip") for line in installs] == [False, True, False]
    made.conda_project("pip", "24.0", noarch=True)
    for form in ("environment.yml", "dockerfile"):
        text, notes = exported(capsys, form, made.prefix, "--no-index")
        assert "has no pip" not in notes and "--freeze-installed" not in text


def test_create_from_conda_packages_and_projects_without_python_and_pip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rattler", reason="py-rattler is not installed")
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    channel = Channel(tmp_path / "channel")
    channel.add("tool", "1.0")
    channel.add_python()
    wheel(tmp_path / "wheels", "aa", "1.0")
    lock = tmp_path / "environment.yml"
    lock.write_text(f"channels: ['{channel.url}']\ndependencies: [tool, pip: ['aa==1.0']]\n")
    words = ["--from", str(lock), "--find-links", str(tmp_path / "wheels"), "--no-index", "--json"]
    assert run(["env", "create", str(tmp_path / "made"), *words]) == 0
    assert json.loads(capsys.readouterr().out)["sound"]
    ran = subprocess.run([tmp_path / "made/bin/aa-run"], capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n"


@pytest.mark.parametrize("form", ["requirements", "environment.yml", "pixi"])
def test_an_export_does_not_differ_from_its_venv(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In two of the forms, conda installs Python and pip."""
    pytest.importorskip("rattler", reason="py-rattler is not installed")
    made = Environment(tmp_path / "env")
    made.project("aa")
    made.project("pip", "24.0")
    lock = tmp_path / {"requirements": "requirements.txt", "pixi": "pixi.toml"}.get(form, form)
    lock.write_text(exported(capsys, form, made.prefix, "--no-index")[0])
    assert run(["env", "diff", str(made.prefix), str(lock)]) == 0, capsys.readouterr().out
    assert run(["env", "diff", str(lock), str(made.prefix)]) == 0, capsys.readouterr().out
    assert run(["env", "check", "--prefix", str(made.prefix), "--lock", str(lock)]) == 0
    (made.prefix / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.6\n")
    assert run(["env", "diff", str(lock), str(made.prefix)]) == (0 if form == "requirements" else 1)
