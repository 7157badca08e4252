# SPDX-License-Identifier: Apache-2.0
"""A simulated S3: objects in memory, which clients with currently valid keys can read.

`KeyService` returns keys like a container's credential service, and a test can make them expire. `MadeS3` checks each
request's signature by AWS's rules (Signature Version 4, docs.aws.amazon.com/IAM/latest/UserGuide/
reference_sigv-create-signed-request.html), implemented independently of the engine.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from http_messages import Answer, Request, refusal

REGION = "us-east-1"
_FAR = "2999-01-01T00:00:00Z"  # the date does not show when the keys become invalid


@dataclass(frozen=True)
class Keys:
    id: str
    secret: str
    token: str


class KeyService:
    """Has one set of keys at a time; thread-safe. Its response is that of AWS_CONTAINER_CREDENTIALS_FULL_URI."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._all: list[Keys] = []
        self.times_given = 0
        self.expire()

    def expire(self) -> None:
        """From now on, other keys are valid."""
        with self._lock:
            number = len(self._all)
            secret, token = (hashlib.sha256(f"{self._seed} {number} {of}".encode()).hexdigest() for of in ("s", "t"))
            self._all.append(Keys(f"AKIDMADE{number:04d}", f"{secret[:38]}/+", f"{token}=="))

    def issued(self) -> list[Keys]:
        with self._lock:
            return list(self._all)

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            keys = self._all[-1]
            self.times_given += 1
        found = {"AccessKeyId": keys.id, "SecretAccessKey": keys.secret, "Token": keys.token, "Expiration": _FAR}
        return refusal(200, "OK", json.dumps(found).encode())


class MadeS3:
    """`objects`: bucket/key -> bytes. Thread-safe."""

    def __init__(self, objects: Mapping[str, bytes], keys: KeyService) -> None:
        self._objects = {name: (content, f'"{hashlib.md5(content).hexdigest()}"') for name, content in objects.items()}
        self._keys = keys
        self._lock = threading.Lock()
        self.refused: Counter[str] = Counter()  # by their code

    def __call__(self, request: Request) -> Answer:
        if code := self._complaint(request):
            with self._lock:
                self.refused[code] += 1
            return _error(400 if code == "ExpiredToken" else 403, code)
        found = self._objects.get(unquote(urlsplit(request.target).path).lstrip("/"))
        if found is None:
            return _error(404, "NoSuchKey")
        content, etag = found
        if request.headers.get("if-match", etag) != etag:
            return _error(412, "PreconditionFailed")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if not asked:
            return _content(200, "OK", content, etag)
        first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
        if first >= len(content):
            return refusal(416, "Range Not Satisfiable", Content_Range=f"bytes */{len(content)}")
        answer = _content(206, "Partial Content", content[first : last + 1], etag)
        answer.set("Content-Range", f"bytes {first}-{last}/{len(content)}")
        return answer

    def _complaint(self, request: Request) -> str:
        """Returns the error code; empty if the keys are valid and the signature matches."""
        scheme = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/([^/]+)/s3/aws4_request), SignedHeaders=([a-z0-9;-]+), "
            r"Signature=([0-9a-f]{64})",
            request.headers.get("authorization", ""),
        )
        if not scheme:
            return "AccessDenied"
        issued = self._keys.issued()
        keys = next((known for known in issued if known.id == scheme[1]), None)
        if keys is None:
            return "InvalidAccessKeyId"
        if scheme[3] != REGION or request.headers.get("x-amz-security-token") != keys.token:
            return "InvalidToken"
        if not hmac.compare_digest(signature(request, keys, scheme[2], scheme[4]), scheme[5]):
            return "SignatureDoesNotMatch"
        return "" if keys == issued[-1] else "ExpiredToken"


def signature(request: Request, keys: Keys, scope: str, signed: str) -> str:
    """Returns the signature in hexadecimal. signed: names of headers, sorted and separated by semicolons."""
    parts = urlsplit(request.target)
    listed = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed.split(";"))
    query = "&".join(sorted(parts.query.split("&")))
    canonical = "\n".join(
        (request.method, parts.path, query, listed, signed, request.headers.get("x-amz-content-sha256", ""))
    )
    to_sign = "\n".join(
        (
            "AWS4-HMAC-SHA256",
            request.headers.get("x-amz-date", ""),
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        )
    )
    key = f"AWS4{keys.secret}".encode()
    for part in (*scope.split("/"), to_sign):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def _content(status: int, words: str, body: bytes, etag: str) -> Answer:
    return refusal(status, words, body, ETag=etag, Last_Modified="Tue, 24 Nov 2020 00:00:00 GMT")


def _error(status: int, code: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>no</Message></Error>'
    return refusal(status, code, body.encode(), x_amz_request_id="MADE")
