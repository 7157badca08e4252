# SPDX-License-Identifier: Apache-2.0
"""Environments with packages from PyPI, and a process with two OpenMP runtimes: slow, so only with FEEDLINE_PROOFS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from feedline.cli.root import run
from feedline.env.create.pip_part import uv_program

pytestmark = [
    pytest.mark.skipif(os.environ.get("FEEDLINE_PROOFS") != "long", reason="FEEDLINE_PROOFS=long asks for it"),
    pytest.mark.skipif(uv_program() is None, reason="uv is not installed"),
]


def env(*arguments: str | Path) -> int:
    return run(["env", *map(str, arguments)])


def test_projects_of_pypi_are_made_again_by_hash_to_the_same_fingerprint(tmp_path: Path) -> None:
    lock = tmp_path / "first.txt"
    lock.write_text("numpy==2.4.6\nmarkupsafe==3.0.2\nsix==1.17.0\n")
    first = tmp_path / "a_b_cpu"
    assert env("create", first, "--from", lock) == 0
    for form, name in (("pylock", "pylock.toml"), ("requirements", "requirements.txt")):
        assert env("export", "--to", form, "--from", first, "--export-file", tmp_path / name) == 0
        assert (tmp_path / name).read_text().count("sha256") == 3
        second = tmp_path / form / "a_b_cpu"
        assert env("create", second, "--from", tmp_path / name) == 0
        assert env("diff", first, second) == 0
    (first / f"lib/python3.{sys.version_info.minor}/site-packages/six.py").write_text("# by hand\n")
    assert env("check", "--prefix", first) == 1


def test_two_openmp_runtimes_of_a_real_process_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """torch's wheel contains one, and scikit-learn's another."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    code = "import torch, sklearn.ensemble; print(flush=True); input()"
    one = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert one.stdout is not None and one.stdout.readline() == b"\n"
        env("check", "--pid", one.pid, "--json")
    finally:
        one.communicate(b"\n")
    told = json.loads(capsys.readouterr().out)
    found = [finding for finding in told["findings"] if finding["code"] == "openmp_copies"]
    assert len(found) == 1 and "libgomp" in found[0]["evidence"][0] and "scikit_learn.libs" in found[0]["evidence"][0]
