# SPDX-License-Identifier: Apache-2.0
"""The benchmark's data: one large object, single photos, and the photos of tools/bench in tars and in the formats of
LitData and MosaicML Streaming. The folder is the web server's root, and is copied to the bucket.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers import BUCKET, KEY_ID, SECRET, keys_for

SHARD_SAMPLES = 1000
RANGE_BYTES = 8 << 20
_LARGE_BYTES = 256 << 20
_MAKE_S = 900
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Data:
    root: Path
    samples: int

    @property
    def shards(self) -> str:
        """Returns the tars as a brace list, relative to the root."""
        return f"tars/{{000..{self.samples // SHARD_SAMPLES - 1:03d}}}.tar"

    def ranges(self, passes: int) -> list[tuple[str, int, int]]:
        size = (self.root / "large.bin").stat().st_size
        return [("large.bin", at, at + RANGE_BYTES - 1) for at in range(0, size, RANGE_BYTES)] * passes

    def objects(self, passes: int) -> list[str]:
        return [f"photos/{path.name}" for path in sorted((self.root / "photos").iterdir())] * passes


def make(photos: Path, root: Path, samples: int) -> Data:
    """Writes the data if it is missing or has another number of samples. Repeats photos if there are too few."""
    stamp, found = root / "made", [path for path in sorted(photos.rglob("*")) if path.is_file()]
    if not stamp.is_file() or stamp.read_text() != str(samples):
        (root / "photos").mkdir(parents=True, exist_ok=True)
        (root / "tars").mkdir(exist_ok=True)
        for i, path in enumerate(found):
            link = root / "photos" / f"{i:05d}.jpg"
            link.unlink(missing_ok=True)
            os.link(path, link)
        for shard in range(samples // SHARD_SAMPLES):
            _tar(root / "tars" / f"{shard:03d}.tar", found, shard)
        large = b"".join(path.read_bytes() for path in found)
        (root / "large.bin").write_bytes((large * (_LARGE_BYTES // len(large) + 1))[:_LARGE_BYTES])
        stamp.write_text(str(samples))
    for path in root.rglob("*"):  # so that no round includes disk reads
        if path.is_file():
            path.read_bytes()
    return Data(root, samples)


def _tar(path: Path, photos: list[Path], shard: int) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(shard * SHARD_SAMPLES, (shard + 1) * SHARD_SAMPLES):
            for suffix, data in (("jpg", photos[i % len(photos)].read_bytes()), ("cls", str(i % 10).encode())):
                entry = tarfile.TarInfo(f"{i:06d}.{suffix}")
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))


def packed_by_peer(name: str, python: Path, data: Data) -> str:
    """Returns why a peer's own files are not available; empty if they are in `root/NAME`."""
    out = data.root / name
    if (out / "made").is_file() and (out / "made").read_text() == str(data.samples):
        return ""
    command = [str(python), str(_HERE / "readers" / f"pack_{name}.py"), str(data.root / "tars"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_MAKE_S)
    if done.returncode != 0:
        return f"its files could not be written: {(done.stderr.strip().splitlines() or ['no message'])[-1][-300:]}"
    (out / "made").write_text(str(data.samples))
    return ""


def fill(port: int, data: Data, folders: Iterable[str]) -> None:
    """Copies missing objects to the bucket; retries, as a new server may not yet accept writes."""
    import boto3
    from botocore.exceptions import ClientError

    keys = keys_for(port)
    s3: Any = boto3.client(
        "s3", endpoint_url=keys["AWS_ENDPOINT_URL"], aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )  # fmt: skip
    for attempt in range(100):
        try:
            s3.create_bucket(Bucket=BUCKET)
            break
        except (s3.exceptions.BucketAlreadyExists, s3.exceptions.BucketAlreadyOwnedByYou):
            break
        except ClientError:
            if attempt == 99:
                raise
            time.sleep(0.2)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    there = {entry["Key"]: entry["Size"] for page in pages for entry in page.get("Contents", [])}
    wanted = [data.root / "large.bin", *(path for name in folders for path in sorted((data.root / name).rglob("*")))]
    for path in wanted:
        key = path.relative_to(data.root).as_posix()
        if path.is_file() and there.get(key) != path.stat().st_size:
            s3.upload_file(str(path), BUCKET, key)
