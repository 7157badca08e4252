# SPDX-License-Identifier: Apache-2.0
"""The servers on this machine: nginx for HTTP and HTTPS, SeaweedFS for S3, with optional latency. A server runs while
its context is active; if it is not installed, Missing is raised.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python" / "remote"))

import certificates

_START_S = 120
KEY_ID, SECRET, BUCKET = "AKIDBENCH", "nobodys-secret", "data"


# settings of the user (keys, certificates and proxies), which these servers do not need
_FOREIGN = ("AWS_", "CURL_CA_BUNDLE", "SSL_CERT_", "FEEDLINE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def forget_the_users_network() -> None:
    """Removes the user's network settings from the environment of this process and of its children."""
    for name in [name for name in os.environ if name.upper().startswith(_FOREIGN)]:
        del os.environ[name]


class Missing(Exception):
    """A server is not available on this machine; the message states the reason."""


def program(name: str) -> str:
    """Returns the path of a program in this environment or in the system."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=folders)
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(command: Sequence[object], port: int, log: Path, **options: Any) -> Iterator[None]:
    """Starts the program and returns when it accepts connections."""
    with log.open("w") as said:
        process = subprocess.Popen([*map(str, command)], stdout=said, stderr=subprocess.STDOUT, **options)
    try:
        until = time.monotonic() + _START_S
        while True:
            if process.poll() is not None or time.monotonic() > until:
                raise Missing(f"{command[0]} does not accept connections; see {log}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
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
  access_log off;
  sendfile on; tcp_nopush on;
  keepalive_requests 1000000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{plain}; root {root}; }}
  server {{
    listen 127.0.0.1:{tls} ssl;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    root {root};
  }}
}}
"""


@dataclass(frozen=True)
class Web:
    port: int
    tls_port: int
    trusted: Path  # the certificate authority


@contextmanager
def nginx(root: Path, folder: Path) -> Iterator[Web]:
    """Serves `root` over HTTP/1.1, with and without TLS; files are sent from the page cache (sendfile)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if shutil.which("openssl") is None:
        raise Missing("openssl is not installed; it is needed to create certificates")
    authority = certificates.Authority(folder)
    web = Web(free_port(), free_port(), authority.trusted)
    user = "user root;" if os.geteuid() == 0 else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(
        _NGINX.format(
            folder=folder, root=root, user=user, plain=web.port, tls=web.tls_port,
            certificate=authority.certificate, key=authority.key,
        )
    )  # fmt: skip
    command = (program("nginx"), "-e", "stderr", "-p", folder, "-c", configuration)
    with _running(command, web.port, folder / "nginx.log"):
        yield web


@contextmanager
def seaweedfs(folder: Path) -> Iterator[int]:
    """Returns the port of an S3 server that stores its data in `folder`, also for later runs."""
    (folder / "disk").mkdir(parents=True, exist_ok=True)
    identities = folder / "identities.json"
    keys = [{"accessKey": KEY_ID, "secretKey": SECRET}]
    identities.write_text(
        json.dumps({"identities": [{"name": "bench", "credentials": keys, "actions": ["Admin", "Read", "Write"]}]})
    )
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    command = [
        program("weed"), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder / 'disk'}", "-s3", "-filer",
        f"-s3.config={identities}", "-master.volumeSizeLimitMB=1024", "-volume.max=16", "-s3.iam=false",
        *(f"-{name}.port={port}" for name, port in ports.items()),
        *(f"-{name}.port.grpc={free_port()}" for name in ports),
    ]  # fmt: skip
    with _running(command, ports["s3"], folder / "weed.log", cwd=folder):
        yield ports["s3"]


@contextmanager
def latency(proxy: Path, port: int, milliseconds: float) -> Iterator[int]:
    """Returns a port that forwards to `port` with this added round-trip time; for 0, returns `port`."""
    if milliseconds == 0:
        yield port
        return
    process = subprocess.Popen([str(proxy), str(port), str(milliseconds)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def keys_for(port: int) -> dict[str, str]:
    """Returns the environment of a process that reads from this S3 server with any library."""
    endpoint = f"http://127.0.0.1:{port}"
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "S3_ENDPOINT_URL": endpoint,  # for MosaicML Streaming
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",  # for obstore, and LitData, which uses it
        "AWS_EC2_METADATA_DISABLED": "true",
    }
