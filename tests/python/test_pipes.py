# SPDX-License-Identifier: Apache-2.0
"""Tars written by commands: read only if this is allowed, judged by the command's exit status, shown without
secrets.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import training

import feedline


@pytest.fixture(autouse=True)
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "spool").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spool"))
    return tmp_path


def batches(data: feedline.Dataset, **options: object) -> list[bytes]:
    with training(data).loader(5, shuffle=True, seed=3, output="numpy", epochs=2, **options) as loader:
        return [np.asarray(field).tobytes() for _ in range(2) for batch in loader for field in batch]


def test_batches_are_those_of_the_files(tars: list[Path], own_files: Path) -> None:
    local = feedline.open(tars)
    folder = tars[0].parent
    for source in (f"pipe:cat '{folder}'/{{000..002}}.tar", [f"pipe:dd if='{tar}' 2>/dev/null | cat" for tar in tars]):
        data = feedline.open(source, allow_commands=True)
        assert data.fingerprint == local.fingerprint
        assert batches(data) == batches(local)
        assert "3 commands run by /bin/sh, with an output of" in data.explain()
        assert data.inspect().samples == len(local)
    assert list((own_files / "spool").iterdir()) == []


def test_a_state_resumes_with_the_command_run_again(tars: list[Path]) -> None:
    def loader() -> feedline.Loader:
        data = feedline.open(f"pipe:cat '{tars[0]}'", allow_commands=True)
        return training(data).loader(2, shuffle=True, seed=1, output="numpy")

    whole = [batch.label.tolist() for batch in loader()]
    first = loader()
    next(iter(first))
    second = loader()
    second.load_state_dict(first.state_dict())
    assert [batch.label.tolist() for batch in second] == whole[1:]


@pytest.mark.parametrize("call", [feedline.open, feedline.inspect])
def test_a_command_needs_leave(call, own_files: Path) -> None:
    mark = own_files / "ran"
    with pytest.raises(feedline.ConfigError, match="allow_commands=True"):
        call(f"pipe:touch '{mark}'")
    with pytest.raises(feedline.ConfigError, match="allow_commands must be True or False"):
        call(f"pipe:touch '{mark}'", allow_commands=1)
    assert not mark.exists()


def test_how_a_command_ends_is_the_error(tars: list[Path]) -> None:
    def error_of(command: str) -> str:
        with pytest.raises((feedline.StorageError, feedline.DataError)) as caught:
            feedline.open(f"pipe:{command}", allow_commands=True)
        return str(caught.value)

    said = error_of(f"cat '{tars[0]}'; echo 'curl: (22) The requested URL returned error: 404' >&2; exit 22")
    assert "ended with status 22" in said and "returned error: 404" in said and "cat '" in said
    assert "wrote nothing" in error_of("true")
    cut = error_of(f"head -c 20000 '{tars[0]}'")
    assert "head -c 20000" in cut and "is truncated" in cut, "half an archive is none, however its command ends"


def test_secrets_are_not_shown(tars: list[Path]) -> None:
    command = f"TOKEN=hunter2 sh -c 'test $TOKEN = hunter2 && cat \"{tars[0]}\"'"
    data = feedline.open(f"pipe:{command}", allow_commands=True)
    with training(data).loader(2, output="numpy") as loader:
        next(iter(loader))
        said = [data.source, data.explain(), repr(data), loader.explain(), str(loader.state_dict())]
    with pytest.raises(feedline.StorageError) as caught:
        feedline.open("pipe:curl-that-is-missing -u me:hunter2 https://me:hunter2@host/0.tar", allow_commands=True)
    assert "hunter2" not in "".join([*said, str(caught.value)])
    assert "no such command" in str(caught.value)


def test_a_path_may_be_spelled_so(tars: list[Path], own_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_files / "pipe:a.tar").write_bytes(tars[0].read_bytes())
    monkeypatch.chdir(own_files)
    assert len(feedline.open("./pipe:a.tar")) == len(feedline.open(tars[0]))
