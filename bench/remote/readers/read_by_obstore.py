# SPDX-License-Identifier: Apache-2.0
"""Reads by obstore: its asynchronous calls, so many at once."""

import asyncio
import os
from typing import Any
from urllib.parse import urlsplit

import obstore
from asked import Asked, Spent, asked, bucket_and_key
from obstore.store import HTTPStore, S3Store

at_once, reads = asked()


def stores() -> Any:
    """The store and path of a URL."""
    kept: dict[str, Any] = {}
    options: dict[str, Any] = {"allow_http": True}
    if "SSL_CERT_FILE" in os.environ:  # of an authority that it cannot be told: a handshake's work less, no byte's
        options["allow_invalid_certificates"] = True

    def of(url: str) -> tuple[Any, str]:
        parts = urlsplit(url)
        if parts.scheme == "s3":
            bucket, key = bucket_and_key(url)
            if bucket not in kept:
                kept[bucket] = S3Store(
                    bucket,
                    endpoint=os.environ["AWS_ENDPOINT_URL"],
                    region="us-east-1",
                    virtual_hosted_style_request=False,
                    client_options=options,
                )
            return kept[bucket], key
        base = f"{parts.scheme}://{parts.netloc}"
        if base not in kept:
            kept[base] = HTTPStore(base, client_options=options)
        return kept[base], parts.path.lstrip("/")

    return of


async def run() -> None:
    store_of, room = stores(), asyncio.Semaphore(at_once)

    async def read(what: Asked) -> int:
        store, path = store_of(what[0])
        async with room:
            if what[1] >= 0:
                return len(await obstore.get_range_async(store, path, start=what[1], end=what[2] + 1))
            return len(await (await obstore.get_async(store, path)).bytes_async())

    spent = Spent()
    got = sum(await asyncio.gather(*map(read, reads)))
    spent.tell(got, len(reads))


asyncio.run(run())
os._exit(0)  # its threads may abort the process while the interpreter ends, after what counts was printed
