# SPDX-License-Identifier: Apache-2.0
"""Finds credentials for s3:// and gs:// that the engine cannot read itself, with botocore and google-auth if installed.

The engine itself reads keys from environment variables and from AWS profiles. The two libraries read all other kinds:
AWS roles, web identities, single sign-on, credential processes, and the credentials of containers and instances;
Google's service accounts, users and external accounts. The engine's threads call `find()` on first use, before
credentials expire, and after a server has rejected them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

from .fork_lock import fork_lock

Found = tuple[str, str, str, str, int]  # id, secret, token, bearer, expiry in seconds since 1970 (0: never)

# Variables that name a source of credentials: without its library, an unsigned request would hide the cause.
_AWS_SOURCES = (
    "AWS_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_GOOGLE_SOURCES = ("GOOGLE_APPLICATION_CREDENTIALS",)
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"  # reads and writes objects only
_METADATA_HOST = "169.254.169.254"
_METADATA_SECONDS = (
    1.0  # a server on the same host answers in milliseconds; google-auth would wait for about 12 seconds
)


class _CredentialsError(PermissionError):
    """A configured source of credentials failed."""


def find(scheme: str) -> Found | str | None:
    """Returns new credentials, None if there are none, or text that names the missing package.

    Each call reads the source again, without a cache, because a server may have rejected the last result.

    Raises:
        PermissionError: a configured source failed.
    """
    with fork_lock:
        return _google() if scheme == "gs" else _aws()


def _aws() -> Found | str | None:
    try:
        import botocore.exceptions
        import botocore.session
    except ImportError:
        return _missing(
            _AWS_SOURCES, "botocore", "s3", "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        )
    try:
        session = botocore.session.Session()
        # botocore ignores AWS_REGION, and has no default for STS; the engine's is the same
        region = os.environ.get("AWS_REGION") or session.get_config_variable("region") or "us-east-1"
        session.set_config_variable("region", region)
        credentials: Any = session.get_credentials()
        if credentials is None:
            return None
        frozen = credentials.get_frozen_credentials()
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, OSError, ValueError) as error:
        raise _CredentialsError(f"botocore: {type(error).__name__}: {error}") from None
    # botocore has no public name for it. Without it, credentials are replaced once the server reports their expiry.
    expiry = getattr(credentials, "_expiry_time", None)
    return frozen.access_key, frozen.secret_key, frozen.token or "", "", int(expiry.timestamp()) if expiry else 0


def _google() -> Found | str | None:
    try:
        import google.auth
        import google.auth.exceptions
        import google.auth.transport.requests
    except ImportError:
        return _missing(
            _GOOGLE_SOURCES,
            "google-auth and requests",
            "gs",
            "set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY to an HMAC key, or CLOUDSDK_AUTH_ACCESS_TOKEN to a token",
        )
    if not _has_google_source():
        return None
    request = google.auth.transport.requests.Request()
    try:
        with _without_warnings("google.auth._default", "google.auth.compute_engine._metadata"):
            credentials, _ = google.auth.default(scopes=[_GOOGLE_SCOPE], request=request)
        credentials.refresh(request)
    except google.auth.exceptions.GoogleAuthError as error:
        if not _names_google_source():  # the metadata server is not Google's, or has no account
            return None
        raise _CredentialsError(f"google-auth: {type(error).__name__}: {_message(error)}") from None
    except (OSError, ValueError) as error:
        raise _CredentialsError(f"google-auth: {type(error).__name__}: {error}") from None
    expiry = credentials.expiry
    return "", "", "", credentials.token, int(expiry.replace(tzinfo=UTC).timestamp()) if expiry else 0


def _missing(variables: tuple[str, ...], package: str, extra: str, other: str) -> str | None:
    named = [name for name in variables if os.environ.get(name)]
    if not named:
        return None
    return (
        f"{named[0]} is set, but {package}, which reads it, is not installed: run pip install "
        f'"feedline[{extra}]"; or {other}'
    )


def _names_google_source() -> bool:
    if any(os.environ.get(name) for name in _GOOGLE_SOURCES):
        return True
    folder = os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config/gcloud"
    return Path(folder, "application_default_credentials.json").is_file()


def _has_google_source() -> bool:
    """Whether a file with credentials, or a metadata server, exists."""
    if _names_google_source() or os.environ.get("GCE_METADATA_HOST"):
        return True
    if os.environ.get("NO_GCE_CHECK", "").lower() == "true":
        return False
    try:
        socket.create_connection((_METADATA_HOST, 80), timeout=_METADATA_SECONDS).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _without_warnings(*loggers: str) -> Iterator[None]:
    """Suppresses google-auth's warnings about a missing project or metadata server, neither of which is needed here."""

    def is_error(record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR

    for name in loggers:
        logging.getLogger(name).addFilter(is_error)
    try:
        yield
    finally:
        for name in loggers:
            logging.getLogger(name).removeFilter(is_error)


def _message(error: Exception) -> str:
    """Returns the error's message; for a response to a token request, which may repeat the request's secrets, returns
    only its error fields.
    """
    if type(error).__name__ != "RefreshError":
        return str(error)
    response = error.args[1] if len(error.args) > 1 else None
    if isinstance(response, dict) and "error" in response:
        return f"{response['error']}: {response.get('error_description')}"
    return "the server refused to return a token"
