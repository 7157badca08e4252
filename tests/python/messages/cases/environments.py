# SPDX-License-Identifier: Apache-2.0
"""feedline env: snapshots and locks."""

from messages.command_line import command_line as cli
from messages.expressions import expressions, functions
from messages.samples import Samples

NEEDS = ("packaging", "yaml")


def _a_conda_lock_of_another_platform(s: Samples) -> None:
    lock = s.write("conda-lock.yml", "version: 1\nmetadata: {platforms: [a]}\npackage: []")
    cli("env", "create", "here/env", "--from", lock)


def _a_pixi_lock_of_another_platform(s: Samples) -> None:
    lock = s.write("pixi.lock", "version: 6\nenvironments: {default: {packages: {a: []}}}")
    cli("env", "create", "here/env", "--from", lock)


CASES = {
    **expressions("""
        cli("env", "snapshot", "--prefix", "no/such/folder")
        cli("env", "snapshot", "--prefix", "here")
        cli("env", "snapshot", "--pid", 999999999)
        cli("env", "snapshot", "--snapshot-file", "here/none/a.json")
        cli("env", "check", "--lock", "here/none.lock")
        cli("env", "check", "--prefix", "here")
        cli("env", "diff", "here/a.json", "here/b.json")
        cli("env", "diff", write("a.json", "text"), write("b.json", "text"))
        cli("env", "diff", write("a.json", "[]"), write("b.json", "[]"))
        cli("env", "diff", write("a.json", '{"feedline_snapshot": 99}'), "here/a.json")
        cli("env", "export", "--to", "requirements", "--from", "here/none")
        cli("env", "export", "--to", "requirements", "--from", write("uv.lock", "version = 1"))
        cli("env", "create", "here/env", "--from", "here/none.lock")
        cli("env", "create", "here/env", "--from", write("notes.txt", "text here"))
        cli("env", "create", "here/env", "--from", write("uv.lock", "version = 9"))
        cli("env", "create", "here/env", "--from", write("uv.lock", "text ="))
        cli("env", "create", "here/env", "--from", write("pylock.toml", "lock-version = '9'"))
        cli("env", "create", "here/env", "--from", write("pixi.lock", "version: 99"))
        cli("env", "create", "here/env", "--from", write("pixi.toml", "[a]"))
        cli("env", "create", "here/env", "--from", write("environment.yml", "name: a"))
        cli("env", "create", "here/env", "--from", write("environment.yml", "dependencies: [{a: b}]"))
        cli("env", "create", "here/env", "--from", write("conda-lock.yml", "version: 9"))
        cli("env", "create", "here/env", "--from", write("requirements.txt", "torch =="))
        cli("env", "create", "here/env", "--from", write("requirements.txt", "-r requirements.txt"))
        cli("env", "create", "here/env", "--from", write("requirements.txt", ""))
        cli("env", "create", "here/env", "--from", write("explicit.txt", "@EXPLICIT\\nhttp://host/x"))
        cli("env", "create", "here/env", "--from", write("uv.lock", b"\\xff\\xfe"))
        cli("env", "clean", "here/none", "--yes")
        cli("env", "clean", "--yes")
        cli("env", "create", "here/env")
        cli("env", "create", "here/env", "numpy", "--from", "here/none.lock")
        cli("env", "create", "here/env", "python=3.11")
        cli("env", "create", "here/env", "python>=3.11", "numpy")
        cli("env", "create", "here/env", "numpy==")
        cli("env", "create", "here/env", "=1.2", "--channel", "conda-forge")
        cli("env", "clean", "/usr", "--yes")
        cli("env", "diff", write("a.json", '{"environment_snapshot": 99}'), "here/a.json")
        cli("env", "diff", write("a.json", '{"environment_snapshot": 1}'), "here/a.json")
        cli("env", "create", "here/env", "--from", write("other.lock", "a"))
        cli("env", "create", "here/env", "--from", write("notes.md", "a"))
        cli("env", "create", "here/env", "--from", write("requirements.txt", "--global-option x ="))
        cli("env", "create", "here/env", "--from", write("environment.yml", "dependencies: ['??']"))
        cli("env", "create", "here/env", "--from", write("conda-lock.yml", "version: 9\\nmetadata: {}\\npackage: []"))
        cli("env", "create", "here/env", "--from", write("conda-lock.yml", "version: 1\\nmetadata:\\npackage: []"))
        cli("env", "create", "here/env", "--from", write("pixi.lock", "version: 6\\nenvironments: {dev: {}}"))
        cli("env", "create", "here/env", "--from", write("pixi.lock", "version: ["))
    """),
    **functions(globals()),
}
