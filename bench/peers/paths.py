# SPDX-License-Identifier: Apache-2.0
"""The folders of photos, shards, programs, and the peers' files made from the photos."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

_FEW = 400  # number of photos in the task that measures gaps between epochs: its epochs are short
_CLASSES = 10


def few_photos(photos: Path, out: Path, count: int) -> Path:
    """Creates a folder of links to some of the photos, with equally many of each class."""
    if not out.exists():
        part = out.with_name(f"{out.name}.part")
        for folder in sorted(path for path in photos.iterdir() if path.is_dir()):
            (part / folder.name).mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.iterdir())[: count // _CLASSES]:
                link = part / folder.name / path.name
                link.unlink(missing_ok=True)
                link.symlink_to(path.resolve())
        part.rename(out)
    return out


def fingerprint(*folders: Path) -> str:
    """Returns a digest of the files' names and sizes, so that peers' files from other photos are not reused."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(folder)} {path.stat().st_size}\n".encode())
    return digest.hexdigest()[:12]


@dataclass(frozen=True)
class Paths:
    """Photos by their names in tasks, shards of "photos" as a brace list, the peers' environments and files (`made`),
    compiled programs, and the folder for saved images.
    """

    photos: dict[str, Path]
    tars: str
    environments: Path
    made: Path
    programs: Path
    sheets: Path | None

    @staticmethod
    def of(data: Path, environments: Path, programs: Path, sheets: Path | None) -> Paths:
        """Requires: `data` has bench_photos, bench_shards and bench_large."""
        photos = {"photos": data / "bench_photos", "large": data / "bench_large"}
        made = environments / "made" / fingerprint(*photos.values())
        made.mkdir(parents=True, exist_ok=True)
        if sheets:
            sheets.mkdir(parents=True, exist_ok=True)
        photos["few"] = few_photos(photos["photos"], made / "few", _FEW)
        shards = sorted((data / "bench_shards").glob("*.tar"))
        tars = str(shards[0].parent / f"{{{shards[0].stem}..{shards[-1].stem}}}.tar")
        return Paths(photos, tars, environments, made, programs, sheets)

    def warm(self) -> None:
        """Reads every file once, so that no round includes disk reads."""
        for folder in (*self.photos.values(), Path(self.tars).parent):
            for path in folder.rglob("*"):
                if path.is_file():
                    with path.open("rb") as file:
                        while file.read(1 << 20):
                            pass
