# SPDX-License-Identifier: Apache-2.0
"""Packs class folders as WebDataset tars, in the folder's order: sample i is the same in both.

Each sample is `<class>/<name>.jpg` and `<class>/<name>.cls`, the class number as text. The tars are ustar with fixed
owner and time, so the same files produce the same bytes.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

SAMPLES_PER_SHARD = 500


def pack(folder: Path, out: Path, samples_per_shard: int = SAMPLES_PER_SHARD) -> str:
    """Packs `folder` into shards in `out`, and returns them as a brace list: `out/{000000..000002}.tar`."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    samples = [(path, label) for label, name in enumerate(classes) for path in sorted((folder / name).iterdir())]
    shards = -(-len(samples) // samples_per_shard)
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for shard in range(shards):
        with tarfile.open(part / f"{shard:06d}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for path, label in samples[shard * samples_per_shard : (shard + 1) * samples_per_shard]:
                key = f"{path.parent.name}/{path.stem}"
                _add(tar, f"{key}{path.suffix}", path.read_bytes())
                _add(tar, f"{key}.cls", str(label).encode())
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    return brace_list(out)


def brace_list(out: Path) -> str:
    """Returns the shards in `out` as a source for `feedline.open`."""
    names = sorted(path.stem for path in out.glob("*.tar"))
    return str(out / (f"{{{names[0]}..{names[-1]}}}.tar" if len(names) > 1 else f"{names[0]}.tar"))


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o444
    tar.addfile(entry, io.BytesIO(data))
