# SPDX-License-Identifier: Apache-2.0
"""Credentials from each source that botocore and google-auth read, from simulated services, and their use by the
engine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from fault_proxy import proxied
from http_messages import Answer, Request, refusal
from made_s3 import REGION, KeyService, MadeS3

from feedline.data.storage import credentials

EXPIRES = datetime(2099, 1, 1, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/reader"
STS = """<{0}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{0}Result><Credentials>
<AccessKeyId>ID</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></{0}Result></{0}Response>"""
AWS_JSON = {
    "AccessKeyId": "ID",
    "SecretAccessKey": "secret",
    "Token": "token",
    "Expiration": "2099-01-01T00:00:00Z",
    "Code": "Success",
}


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The AWS and gcloud files in the user's home folder are not read."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / ".aws").mkdir()
    return tmp_path


def answered(body: object) -> Answer:
    return refusal(200, "OK", (body if isinstance(body, str) else json.dumps(body)).encode())


# ---- AWS ----


def aws_services(request: Request) -> Answer:
    """Simulates STS, a container's credentials and an instance's metadata."""
    form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    action = form.get("Action")
    if action == "AssumeRoleWithWebIdentity" and form["WebIdentityToken"] == "of the web" and form["RoleArn"] == ROLE:
        return answered(STS.format(action))
    if action == "AssumeRole" and "Credential=BASE/" in request.headers.get("authorization", ""):
        return answered(STS.format(action))
    if request.target == "/container" and request.headers.get("authorization") == "Bearer me":
        return answered(AWS_JSON)
    if request.target == "/latest/api/token" and request.method == "PUT":
        return answered("session")
    if request.headers.get("x-aws-ec2-metadata-token") == "session":
        return answered(AWS_JSON if request.target.endswith("/role") else "role")
    return refusal(403, "Forbidden", b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")


def made_environment(source: str, address: str, home: Path) -> dict[str, str]:
    (home / "web").write_text("of the web")
    if source == "web identity":
        return {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(home / "web"),
            "AWS_ROLE_ARN": ROLE,
            "AWS_ENDPOINT_URL_STS": address,
        }
    if source == "container":
        (home / "authorization").write_text("Bearer me")
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(home / "authorization"),
        }
    if source == "instance":
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": address, "AWS_EC2_METADATA_DISABLED": "false"}
    profiles = {
        "role of a profile": f"role_arn = {ROLE}\nsource_profile = base\n",
        "web identity of a profile": f"role_arn = {ROLE}\nweb_identity_token_file = {home / 'web'}\n",
        "process": f"credential_process = cat {home / 'printed'}\n",
    }
    printed = {**AWS_JSON, "SessionToken": "token", "Version": 1}
    (home / "printed").write_text(json.dumps(printed))
    base = "[profile base]\naws_access_key_id = BASE\naws_secret_access_key = s\n"
    (home / ".aws/config").write_text(f"{base}[profile mine]\n{profiles[source]}")
    return {"AWS_PROFILE": "mine", "AWS_ENDPOINT_URL_STS": address}


@pytest.mark.parametrize(
    "source",
    ["web identity", "container", "instance", "role of a profile", "web identity of a profile", "process"],
)
def test_botocore_reads(source: str, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    with proxied(aws_services) as server:
        for name, value in made_environment(source, server.address, own_home).items():
            monkeypatch.setenv(name, value)
        assert credentials.find("s3") == ("ID", "secret", "token", "", int(EXPIRES.timestamp()))


def test_without_a_source_there_are_none() -> None:
    pytest.importorskip("botocore")
    assert credentials.find("s3") is None


def test_a_source_that_fails_is_an_error(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(PermissionError, match=r"botocore: ProfileNotFound: .*\(missing\)"):
        credentials.find("s3")
    with proxied(aws_services) as server:
        for name, value in made_environment("web identity", server.address, own_home).items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE")
        (own_home / "web").write_text("hunter2")
        with pytest.raises(PermissionError, match=r"botocore: .*AssumeRoleWithWebIdentity") as caught:
            credentials.find("s3")
    assert "hunter2" not in str(caught.value)


# ---- Google ----


def google_services(request: Request) -> Answer:
    """Simulates Google's token endpoint, and the metadata server of its machines."""
    form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    if request.target == "/echo":
        return refusal(400, "Bad Request", request.body)
    if form.get("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer" and form["assertion"].count(".") == 2:
        return answered({"access_token": "of the account", "expires_in": 3600, "token_type": "Bearer"})
    if form.get("grant_type") == "refresh_token" and form["refresh_token"] == "1//r":
        return answered({"access_token": "of the user", "expires_in": 3600, "token_type": "Bearer"})
    answer = refusal(404, "Not Found")
    if request.headers.get("metadata-flavor") == "Google":
        if "/token" in request.target:
            answer = answered({"access_token": "of the machine", "expires_in": 3600, "token_type": "Bearer"})
        elif "service-accounts/default/" in request.target:
            answer = answered({"email": "x@y", "scopes": [], "aliases": ["default"]})
        else:
            answer = answered("project")
        answer.set("Metadata-Flavor", "Google")
        answer.set("Content-Type", "text/plain" if answer.body == b"project" else "application/json")
    return answer


def rsa_key() -> str:
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kinds = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return str(key.private_bytes(*kinds).decode())


def account(address: str, path: str = "/token") -> str:
    return json.dumps(
        {
            "type": "service_account",
            "private_key_id": "k",
            "private_key": rsa_key(),
            "client_email": "reader@project.iam",
            "token_uri": address + path,
        }
    )


USER = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "1//r"}


@pytest.mark.parametrize("source", ["account", "user", "machine"])
def test_google_auth_reads(source: str, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.auth.transport.requests")
    with proxied(google_services) as server:
        if source == "account":
            (own_home / "account.json").write_text(account(server.address))
            monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(own_home / "account.json"))
        elif source == "user":
            (own_home / "application_default_credentials.json").write_text(json.dumps(USER))
            monkeypatch.setenv("CLOUDSDK_CONFIG", str(own_home))
            from google.oauth2 import credentials as of_users  # it ignores the file's token_uri

            monkeypatch.setattr(of_users, "_GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{server.address}/token")
        else:
            host = server.address.removeprefix("http://")
            monkeypatch.delenv("NO_GCE_CHECK")
            monkeypatch.setenv("GCE_METADATA_HOST", host)
            # google-auth reads these when it is imported
            from google.auth.compute_engine import _metadata

            monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host, raising=False)
            monkeypatch.setattr(_metadata, "_GCE_DEFAULT_HOST", host, raising=False)
            monkeypatch.setattr(_metadata, "_GCE_DEFAULT_MDS_IP", host, raising=False)
        found = credentials.find("gs")
    assert isinstance(found, tuple)
    assert found[:4] == ("", "", "", f"of the {source}")
    assert timedelta(minutes=50) < datetime.fromtimestamp(found[4], UTC) - datetime.now(UTC) <= timedelta(hours=1)


def test_google_errors_have_no_secrets(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("google.auth.transport.requests")
    file = own_home / "account.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises(PermissionError, match=r"google-auth: DefaultCredentialsError: .*account\.json"):
        credentials.find("gs")
    with proxied(google_services) as server:
        file.write_text(account(server.address, "/echo"))
        with pytest.raises(PermissionError, match="refused to return a token") as caught:
            credentials.find("gs")
    assert "assertion" not in str(caught.value)


def test_without_a_google_source_there_are_none() -> None:
    pytest.importorskip("google.auth.transport.requests")
    assert credentials.find("gs") is None


# ---- in the engine ----

HEAD = """
import os, sys, tempfile, threading, time, urllib.request
import feedline
source = sys.argv[1]
def samples():
    with tempfile.TemporaryDirectory() as index:  # an index of its own, so that the shard is read
        return len(feedline.open(source, index=index))
"""


@contextmanager
def bucket(tar: Path) -> Iterator[tuple[dict[str, str], KeyService, MadeS3, threading.Event]]:
    """A bucket that accepts only the current keys, which a container service returns once the event is set."""
    keys, may_answer = KeyService(1), threading.Event()
    may_answer.set()
    s3 = MadeS3({"data/000.tar": tar.read_bytes()}, keys)

    def service(request: Request) -> Answer:
        if request.target == "/expire":
            keys.expire()
        if request.target == "/answer":
            may_answer.set()
        if request.target != "/keys":
            return answered("")
        may_answer.wait(60)
        return keys(request)

    with proxied(service) as key_server, proxied(s3) as server:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL_S3": server.address,
            "AWS_REGION": REGION,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{key_server.address}/keys",
            "KEY_SERVER": key_server.address,
        }
        yield environment, keys, s3, may_answer


def run(program: str, environment: dict[str, str], source: str = "s3://data/000.tar") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program, source],
        env=environment, capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_rejected_keys_are_replaced(tars: list[Path]) -> None:
    pytest.importorskip("botocore")
    program = """
before = samples()
urllib.request.urlopen(os.environ["KEY_SERVER"] + "/expire")
print(before == samples() > 0)
"""
    with bucket(tars[0]) as (environment, keys, s3, _):
        assert run(program, environment)[:2] == (0, "True\n")
        assert s3.refused == {"ExpiredToken": 1}
        assert keys.times_given == 2


def test_a_fork_waits_for_credentials_that_another_thread_reads(tars: list[Path]) -> None:
    pytest.importorskip("botocore")
    program = """
found = []
reading = threading.Thread(target=lambda: found.append(samples()))
reading.start()
time.sleep(1)  # it is reading them now
threading.Timer(1, lambda: urllib.request.urlopen(os.environ["KEY_SERVER"] + "/answer")).start()
child = os.fork()
if child == 0:
    status = 1
    try:
        status = 0 if samples() > 0 else 2
    finally:
        os._exit(status)
reading.join()
print(os.waitpid(child, 0)[1], found[0] > 0)
"""
    with bucket(tars[0]) as (environment, _, _, may_answer):
        may_answer.clear()
        assert run(program, environment)[:2] == (0, "0 True\n")


def test_a_program_ends_while_credentials_are_read(tars: list[Path]) -> None:
    pytest.importorskip("botocore")
    program = "threading.Thread(target=samples, daemon=True).start(); time.sleep(1); print('end')"
    with bucket(tars[0]) as (environment, _, _, may_answer):
        may_answer.clear()
        assert run(program, environment)[:2] == (0, "end\n")
        may_answer.set()


def test_threads_that_asked_for_credentials_end_with_their_dataset(tars: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    program = """
for number in range(5):
    dataset = feedline.open(sys.argv[1], fields=("jpg", "cls"), cache=os.path.join(os.environ["CACHES"], str(number)))
    urllib.request.urlopen(os.environ["KEY_SERVER"] + "/expire")  # so that threads of the engine ask
    with dataset.resize((8, 8)).loader(2, num_workers=2, output="numpy") as loader:
        for batch in loader:
            pass
    del dataset, loader, batch  # joins those threads under the GIL
print("end")
"""
    with bucket(tars[0]) as (environment, keys, _, _):
        assert run(program, {**environment, "CACHES": str(tmp_path)})[:2] == (0, "end\n")
        assert keys.times_given > 1


def test_google_tokens_are_sent(tars: list[Path], own_home: Path) -> None:
    pytest.importorskip("google.auth.transport.requests")
    seen = []

    def service(request: Request) -> Answer:
        if request.method == "POST":
            return google_services(request)
        seen.append(request.headers.get("authorization"))
        s3 = MadeS3({"data/000.tar": tars[0].read_bytes()}, KeyService(1))
        s3._complaint = lambda request: ""  # type: ignore[method-assign]
        return s3(request)

    with proxied(service) as server:
        (own_home / "account.json").write_text(account(server.address))
        environment = {
            **os.environ,
            "GS_ENDPOINT_URL": server.address,
            "GOOGLE_APPLICATION_CREDENTIALS": str(own_home / "account.json"),
        }
        assert run("print(samples() > 0)", environment, "gs://data/000.tar")[:2] == (0, "True\n")
    assert set(seen) == {"Bearer of the account"}


@pytest.mark.parametrize(
    ("source", "variables", "words"),
    [
        ("s3", {"AWS_PROFILE": "x"}, r'ConfigError: AWS_PROFILE is set, but botocore.*pip install "feedline\[s3\]"'),
        ("s3", {}, r'StorageError: .*403.*sent without keys.*pip install "feedline\[s3\]"'),
        ("gs", {"GOOGLE_APPLICATION_CREDENTIALS": "x"}, r'ConfigError: .*google-auth.*pip install "feedline\[gs\]"'),
        ("gs", {}, r'StorageError: .*403.*sent without keys.*pip install "feedline\[gs\]"'),
    ],
)
def test_a_missing_package_is_named(source: str, variables: dict[str, str], words: str) -> None:
    program = "sys.modules['botocore'] = sys.modules['google.auth'] = None\nsamples()"
    with proxied(lambda request: refusal(403, "Forbidden")) as server:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | variables
        environment |= {"AWS_ENDPOINT_URL_S3": server.address, "GS_ENDPOINT_URL": server.address}
        status, _, errors = run(program, environment, f"{source}://data/000.tar")
    assert status == 1
    assert re.search(words, errors), errors


def test_an_interrupt_while_credentials_are_read_is_raised(tars: list[Path]) -> None:
    pytest.importorskip("botocore")
    program = """
import signal
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    samples()
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
"""
    with bucket(tars[0]) as (environment, _, _, may_answer):
        may_answer.clear()
        threading.Timer(3, may_answer.set).start()
        assert run(program, environment)[1] == "interrupted\n"
