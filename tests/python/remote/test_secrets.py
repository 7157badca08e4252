# SPDX-License-Identifier: Apache-2.0
"""Keys, tokens, passwords and signatures are only in requests: everything that is printed, stored or written on any
code path is searched for them.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import made_data
import pytest
from range_server import serving
from running_processes import HANG_S

# Each one is recognisable, and occurs in one place in the environment or a URL.
SECRETS = {
    "key": "s3cretKEY0/of+tests",
    "token": "s3cretTOKEN1",
    "password": "s3cretPASS2",
    "signature": "s3cretSIGN3",
    "google": "s3cretGOOG4",
    "hmac": "s3cretHMAC5",
}

# A program that prints, stores and writes everything that a run may: argument 1 is the output folder, 2 the server.
PROGRAM = r"""
import io, json, logging, os, sys, traceback
import feedline

place, server, password, signature = sys.argv[1:5]
said = []
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)

def tell(*what):
    for one in what:
        said.extend([repr(one), str(one)])

def failing(work):
    try:
        work()
    except Exception as error:
        text = io.StringIO()
        traceback.print_exc(file=text)
        tell(error, vars(error), error.args, text.getvalue())
    else:
        raise AssertionError("it was to fail")

signed = f"http://me:{password}@{server}/{{000..002}}.tar?X-Amz-Signature={signature}&X-Goog-Signature={signature}"
one = signed.replace("{000..002}", "000")
for source in (signed, f"s3://data/{{000..002}}.tar", f"gs://data/{{000..002}}.tar"):
    for options in ({}, {"cache": place + "/cache"}, {"verify": "headers", "hedge": True}, {"index": place + "/index"}):
        data = feedline.open(source, **options)
        tell(data, data.source, data.explain(), data.center_crop(8).schema, data.fingerprint)
        with data.center_crop(8).loader(4, output="numpy") as loader:
            for batch in loader:
                break
            tell(loader, loader.explain(), loader.stats(), loader.state_dict(), loader.errors)
        tell(data.center_crop(8)[0][1])
    tell(feedline.inspect(source))
    # and all that goes wrong
    failing(lambda: feedline.open(source.replace("{000..002}", "missing")))
    failing(lambda: feedline.open(source.replace("{000..002}", "refused")))
    failing(lambda: feedline.open(source.replace("{000..002}", "broken")))
    failing(lambda: feedline.open(source, verify="manifest"))
    failing(lambda: feedline.open(source, format="pixels"))
    failing(lambda: feedline.open(source, fields=("nothing.at.all",)).center_crop(8)[0])
    failing(lambda: feedline.open(source).center_crop(8)[10_000])
failing(lambda: feedline.open(one.replace("http", "hppt")))
failing(lambda: feedline.open(one + "\n"))
failing(lambda: feedline.tokens(one, window=4, dtype="uint16"))
failing(lambda: feedline.open(one.replace(server, "127.0.0.1:1")))
with open(place + "/said.txt", "w") as file:
    file.write("\n".join(said))
"""

COMMAND = (sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())")


@pytest.fixture
def environment_of_secrets(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Keys of every kind; all stored files are below `tmp_path`."""
    (tmp_path / "home/.aws").mkdir(parents=True)
    (tmp_path / "home/.aws/credentials").write_text(f"[default]\naws_secret_access_key = {SECRETS['key']}\n")
    return {
        **{name: value for name, value in environment.items() if not name.startswith(("AWS_", "GS_", "GOOGLE_"))},
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "kept"),
        "TMPDIR": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "AKIDTESTS",
        "AWS_SECRET_ACCESS_KEY": SECRETS["key"],
        "AWS_SESSION_TOKEN": SECRETS["token"],
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLOUDSDK_AUTH_ACCESS_TOKEN": SECRETS["google"],
        "NO_GCE_CHECK": "true",
        "FEEDLINE_HTTP_TRIES": "2",
    }


def everything_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".aws" not in path.parts}


def found_in(text: bytes) -> list[str]:
    return [name for name, secret in SECRETS.items() if secret.encode() in text]


@pytest.mark.parametrize("google", ["token", "hmac"])
def test_secrets_are_in_nothing_that_is_reported_kept_or_written(
    environment_of_secrets: dict[str, str], tmp_path: Path, google: str
) -> None:
    served = tmp_path.parent / f"{tmp_path.name}-served"
    (served / "data").mkdir(parents=True)
    made_data.make_tars(made_data.make_folder(served / "photos", 4), served, 3)
    for shard in served.glob("00*.tar"):
        os.link(shard, served / "data" / shard.name)
    statuses = {"refused.tar": "403", "broken.tar": "wrong_range"}
    with serving(served) as server:
        server.fault = lambda number, path: statuses.get(Path(path).name, "")
        for name in ("broken.tar", "data/broken.tar"):
            (served / name).write_bytes((served / "000.tar").read_bytes())
        run_folder = tmp_path / "run"
        run_folder.mkdir()
        host = f"127.0.0.1:{server.server_address[1]}"
        own = environment_of_secrets | {"AWS_ENDPOINT_URL": f"http://{host}", "GS_ENDPOINT_URL": f"http://{host}"}
        if google == "hmac":
            own |= {"GS_ACCESS_KEY_ID": "GOOG1", "GS_SECRET_ACCESS_KEY": SECRETS["hmac"]}
        program = [sys.executable, "-c", PROGRAM, str(run_folder), host, SECRETS["password"], SECRETS["signature"]]
        ran = [subprocess.run(program, env=own, capture_output=True, timeout=HANG_S, check=False)]
        assert ran[0].returncode == 0, ran[0].stderr.decode()
        signed = f"http://me:{SECRETS['password']}@{host}/000.tar?X-Amz-Signature={SECRETS['signature']}"
        for verb in (
            ["verify", signed, "--json", "--resume", run_folder / "verify.jsonl"],
            ["verify", "s3://data/000.tar", "--json"],
            ["inspect", signed, "--json"],
            ["bench", signed, "--json", "--output", run_folder / "bench.json", "--seconds", "0.2"],
            ["verify", signed.replace("000", "missing"), "--json"],
        ):
            ran.append(
                subprocess.run(
                    [*COMMAND, *map(str, verb)],
                    env=own,
                    capture_output=True,
                    timeout=HANG_S,
                    check=False,
                    cwd=run_folder,
                )
            )
    for process in ran:
        assert not found_in(process.stdout + process.stderr), process.args[-6:]
    written = everything_below(tmp_path)
    assert run_folder / "said.txt" in written and len(written) > 5
    assert json.dumps([str(path) for path, text in written.items() if found_in(text)]) == "[]"
    assert not [path for path in written if found_in(str(path).encode())]
    seen = "\n".join(server.credentials)
    own_token = "google" if google == "token" else "token"
    assert SECRETS["signature"] in seen and SECRETS["token"] in seen and SECRETS[own_token] in seen, "they were in use"
    assert base64.b64encode(f"me:{SECRETS['password']}".encode()).decode() in seen
