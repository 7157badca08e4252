# SPDX-License-Identifier: Apache-2.0
"""Reads with obstore: many concurrent asynchronous calls."""

import asyncio
import os
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.store import HTTPStore, S3Store
from read_list import Read, Stopwatch, bucket_and_key, requested_reads

at_once, reads = requested_reads()


def stores() -> Any:
    """Returns the store and path for a URL."""
    by_name: dict[str, Any] = {}
    options: dict[str, Any] = {"allow_http": True}
    # a certificate authority cannot be set, so certificates are not checked; this affects only handshakes
    if "SSL_CERT_FILE" in os.environ:
        options["allow_invalid_certificates"] = True

    def of(url: str) -> tuple[Any, str]:
        parts = urlsplit(url)
        if parts.scheme == "s3":
            bucket, key = bucket_and_key(url)
            if bucket not in by_name:
                by_name[bucket] = S3Store(
                    bucket,
                    endpoint=os.environ["AWS_ENDPOINT_URL"],
                    region="us-east-1",
                    virtual_hosted_style_request=False,
                    client_options=options,
                )
            return by_name[bucket], key
        base = f"{parts.scheme}://{parts.netloc}"
        if base not in by_name:
            by_name[base] = HTTPStore(base, client_options=options)
        return by_name[base], parts.path.lstrip("/")

    return of


async def run() -> None:
    store_of, room = stores(), asyncio.Semaphore(at_once)

    async def read(what: Read) -> int:
        store, path = store_of(what[0])
        async with room:
            if what[1] >= 0:
                return len(await obstore.get_range_async(store, path, start=what[1], end=what[2] + 1))
            return len(await (await obstore.get_async(store, path)).bytes_async())

    stopwatch = Stopwatch()
    got = sum(await asyncio.gather(*map(read, reads)))
    stopwatch.report(got, len(reads))


asyncio.run(run())
os._exit(0)  # its threads may abort the process when the interpreter exits
