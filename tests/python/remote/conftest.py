# SPDX-License-Identifier: Apache-2.0
"""Servers, and faults between them and Feedline. `tools/test --proofs` runs the long forms."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import certificates

_FOREIGN = (
    "AWS_",
    "GS_",
    "GOOGLE_",
    "CLOUDSDK_",
    "GCE_",
    "CURL_CA_BUNDLE",
    "SSL_CERT_",
    "FEEDLINE_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)


@pytest.fixture(autouse=True)
def own_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests do not use the certificates, keys and proxies of the user who runs them."""
    for name in list(os.environ):
        if name.upper().startswith(_FOREIGN) and name != "FEEDLINE_PROOFS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> certificates.Authority:
    """Certificates for 127.0.0.1, by an authority that only clients with the right settings trust."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes certificates, is not installed")
    return certificates.Authority(tmp_path_factory.mktemp("certificates"))
