# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for the tests, and its certificate for this machine."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

_EXTENSIONS = "subjectAltName=IP:127.0.0.1,DNS:localhost"


class Authority:
    """`trusted` is the file that clients trust (SSL_CERT_FILE); `certificate` and `key` belong to a server."""

    def __init__(self, folder: Path) -> None:
        self.trusted, self.certificate, self.key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
        request, ca_key = folder / "server.csr", folder / "ca.key"
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self._openssl(
            "req", "-x509", *new_key, "-subj", "/CN=tests", "-days", "2", "-keyout", ca_key, "-out", self.trusted
        )
        self._openssl("req", *new_key, "-subj", "/CN=localhost", "-keyout", self.key, "-out", request)
        extensions = folder / "extensions"
        extensions.write_text(_EXTENSIONS)
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.trusted, "-CAkey", ca_key, "-CAcreateserial",
            "-days", "2", "-extfile", extensions, "-out", self.certificate,
        )  # fmt: skip

    @staticmethod
    def _openssl(*arguments: object) -> None:
        done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def context(self) -> ssl.SSLContext:
        """Returns the TLS context of a server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context
