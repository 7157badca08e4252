# SPDX-License-Identifier: Apache-2.0
"""Common servers, started for a test: nginx, SeaweedFS, rclone, moto. If a server is not installed, its tests are
skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from fault_proxy import free_port
from running_processes import until

KEY_ID, SECRET = "AKIDTESTS", "hunter2/of+the=tests"
BUCKET = "data"


def program(name: str) -> str:
    """Returns the path of a program, in the environment that runs the tests or in the system."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=folders)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@contextmanager
def running(command: Sequence[object], port: int, log: Path, **options: Any) -> Iterator[None]:
    """Runs the program; the context begins when it accepts connections."""
    with log.open("w") as said:
        process = subprocess.Popen([*map(str, command)], stdout=said, stderr=subprocess.STDOUT, **options)

    def answers() -> bool:
        assert process.poll() is None, f"{command[0]} ended by itself:\n{log.read_text()}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers, f"{command[0]} takes connections")
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


_NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_processes 1;
{user}
events {{ worker_connections 1024; }}
http {{
  log_format counted '$request_uri|$http_range|$status|$body_bytes_sent|$server_protocol';
  access_log {folder}/requests.log counted;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  keepalive_requests 100000;
  server {{ listen 127.0.0.1:{plain}; root {root}; }}
  server {{
    listen 127.0.0.1:{tls} ssl http2;
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    root {root};
  }}
}}
"""


class Nginx:
    """Serves a folder over HTTP/1.1, and over HTTPS with HTTP/2."""

    def __init__(self, folder: Path, plain: int, tls: int) -> None:
        self.log, self.port, self.tls_port = folder / "requests.log", plain, tls
        self.plain, self.tls = f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{tls}"

    def requests(self) -> list[dict[str, str]]:
        names = ("path", "range", "status", "bytes", "protocol")
        return [dict(zip(names, line.split("|"), strict=True)) for line in self.log.read_text().splitlines()]


@contextmanager
def nginx(root: Path, folder: Path, authority: Authority) -> Iterator[Nginx]:
    server = Nginx(folder, free_port(), free_port())
    folder.mkdir(parents=True)
    configuration = folder / "nginx.conf"
    # otherwise, it could not read files that root's tests have created
    user = "user root;" if os.geteuid() == 0 else ""
    configuration.write_text(
        _NGINX.format(
            folder=folder, root=root, user=user, plain=server.port, tls=server.tls_port,
            certificate=authority.certificate, key=authority.key,
        )
    )  # fmt: skip
    command = (program("nginx"), "-e", "stderr", "-p", folder, "-c", configuration)
    with running(command, server.port, folder / "nginx.log"):
        yield server


@contextmanager
def seaweedfs(root: Path, folder: Path) -> Iterator[str]:
    """Returns the endpoint of an S3 server with the files of `root` in `BUCKET`."""
    boto3 = pytest.importorskip("boto3", reason="boto3, which fills the bucket, is not installed")
    (folder / "disk").mkdir(parents=True)
    identities = folder / "identities.json"
    credentials = [{"accessKey": KEY_ID, "secretKey": SECRET}]
    identities.write_text(
        json.dumps(
            {"identities": [{"name": "tests", "credentials": credentials, "actions": ["Admin", "Read", "Write"]}]}
        )
    )
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    grpc = [f"-{name}.port.grpc={free_port()}" for name in ports]
    command = [
        program("weed"), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'disk'}", "-s3", "-filer",
        f"-s3.config={identities}", "-master.volumeSizeLimitMB=64", "-volume.max=8", "-s3.iam=false",
        "-s3.port.lance=0", "-s3.port.iceberg=0",  # all instances would use the same default ports
        *(f"-{name}.port={port}" for name, port in ports.items()), *grpc,
    ]  # fmt: skip
    endpoint = f"http://127.0.0.1:{ports['s3']}"
    with running(command, ports["s3"], folder / "weed.log", cwd=folder):
        _fill(boto3, endpoint, root)
        yield endpoint


@contextmanager
def rclone(root: Path, folder: Path) -> Iterator[str]:
    """Returns the endpoint of rclone's S3 server, which answers 200 to ranges and ignores If-Match."""
    folder.mkdir(parents=True)
    shutil.copytree(root, folder / "disk" / BUCKET)
    port = free_port()
    command = [
        program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY_ID},{SECRET}",
        "--config", folder / "rclone.conf", "--cache-dir", folder / "cache", folder / "disk",
    ]  # fmt: skip
    with running(command, port, folder / "rclone.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def moto(root: Path) -> Iterator[str]:
    boto3 = pytest.importorskip("boto3", reason="moto, an S3, is not installed")
    server = pytest.importorskip("moto.server", reason="moto, an S3, is not installed")
    bucket = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    bucket.start()
    try:
        endpoint = f"http://127.0.0.1:{bucket.get_host_and_port()[1]}"
        until(lambda: _is_emptied(endpoint), "moto takes requests")
        _fill(boto3, endpoint, root)
        yield endpoint
    finally:
        bucket.stop()


def _is_emptied(endpoint: str) -> bool:
    """moto's data outlives its server: another module in this process may have written to it."""
    try:
        with urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"", timeout=10):
            return True
    except OSError:
        return False


def _fill(boto3: Any, endpoint: str, root: Path) -> None:
    keys = {"aws_access_key_id": KEY_ID, "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    s3 = boto3.client("s3", endpoint_url=endpoint, **keys)

    def is_made() -> bool:
        try:
            s3.create_bucket(Bucket=BUCKET)
        except s3.exceptions.ClientError:
            return False  # it accepts connections before it can write
        return True

    until(is_made, "the bucket is made")
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        s3.upload_file(str(file), BUCKET, file.relative_to(root).as_posix())


def environment_of(endpoint: str, authority: Authority | None = None) -> dict[str, str]:
    """Returns the environment for reading `s3://data/...` from this server."""
    found = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    return found | ({"SSL_CERT_FILE": str(authority.trusted)} if authority else {})
