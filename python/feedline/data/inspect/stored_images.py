# SPDX-License-Identifier: Apache-2.0
"""Statistics about the stored images of a source, from a sample of the images, for `feedline inspect`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ... import _engine
from ...cluster import ray_tasks
from ...errors import ConfigError, DataError, StorageError
from ...findings import Entry, Finding
from .. import image_depth
from ..source_spec import SourceSpec
from ..sources import annotations_of, opened_rows, spec_of

_MOST = 200  # maximum number of images; each header is one read
_MOST_REMOTE = 32  # the limit for remote sources, whose images are fetched whole
_MOST_SHARDS = 4  # maximum number of shards that are scanned for samples
_SLICE = 4_096  # samples of a part, if the source is one folder or shard
_TURNED = "turned_by_exif"
_DEEP = "deep_pixels"
_PLAIN = {f"{bits} bits": f"with {bits} bits per channel" for bits in (12, 16, 32)} | {"floats": "with floats"}


@dataclass
class StoredImages:
    """Statistics of `looked_at` examined images out of `samples`; `turned` counts images whose EXIF orientation is not
    1.
    """

    looked_at: int = 0
    turned: int = 0
    orientations: Counter[int] = field(default_factory=Counter)  # key of a rotated image
    formats: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(
        default_factory=Counter
    )  # "progressive", "CMYK", "16 bits", "palette", "interlaced"...

    def add(self, image: bytes) -> None:
        """Counts one encoded image; ignores other data."""
        try:
            name, orientation, stored = _engine.image_traits(image)
        except DataError:
            return
        self.looked_at += 1
        self.formats[name] += 1
        self.stored.update(stored)
        if orientation > 1:
            self.turned += 1
            self.orientations[orientation] += 1

    def merge(self, other: StoredImages) -> None:
        """Adds the counts of `other`."""
        self.looked_at += other.looked_at
        self.turned += other.turned
        for mine, more in (
            (self.orientations, other.orientations),
            (self.formats, other.formats),
            (self.stored, other.stored),
        ):
            mine.update(more)  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, object]:
        """Returns counts by name for JSON, most frequent first."""
        orientations = {str(number): count for number, count in sorted(self.orientations.items())}
        plain = {"looked_at": self.looked_at, "turned_by_exif": self.turned, "orientations": orientations}
        return plain | {"formats": dict(self.formats.most_common()), "stored": dict(self.stored.most_common())}

    def text(self) -> str:
        """Returns a one-line summary; "" if no image was examined."""
        if not self.looked_at:
            return ""
        counts = [f"{count:,} {name}" for name, count in self.formats.most_common()]
        counts += [f"{count:,} {_PLAIN.get(name, name)}" for name, count in self.stored.most_common()]
        turned = [f"{self.turned:,} with an EXIF orientation"] if self.turned else []
        return f"of {self.looked_at:,} examined: {', '.join(counts + turned)}"

    def findings(self) -> list[Finding]:
        """Returns notes on images that are stored rotated, and on images whose pixels lose precision."""
        return [*self._rotated(), *self._deep()]

    def _deep(self) -> list[Finding]:
        found = []
        for depth in (depth for depth in image_depth.DEPTHS if self.stored[depth]):
            images = f"{self.stored[depth]:,} of {self.looked_at:,} images examined"
            text = image_depth.described(depth, images)
            found.append(Finding(_DEEP, "note", evidence=(text,), about={"shard": "", "key": ""}))
        return found

    def _rotated(self) -> list[Finding]:
        if not self.turned:
            return []
        text = (
            f"{self.turned:,} of {self.looked_at:,} examined images have an EXIF orientation other than 1, and are "
            "read as stored, as in torchvision; .decode(apply_exif_orientation=True) rotates them"
        )
        return [Finding(_TURNED, "note", evidence=(text,), about={"shard": "", "key": ""})]


def entries() -> list[Entry]:
    """Returns the documentation pages of the findings that image headers determine."""
    return [
        Entry(
            _TURNED,
            "inspect",
            "images have an EXIF orientation that is not applied",
            "Cameras and phones store a photo as the sensor saw it, with the camera's orientation. Viewers rotate "
            "the photo; Pillow, torchvision and Feedline return the stored pixels. A model then sees rotated "
            "scenes.",
            f"Reads the EXIF orientation from the headers of up to {_MOST} images spread over the source "
            f"({_MOST_REMOTE} if it is remote), in at most {_MOST_SHARDS} shards.",
            "Call `.decode(apply_exif_orientation=True)` in training and in evaluation; do nothing if the model to "
            "be fine-tuned was trained without it.",
            "Orientations stored only in XMP are not detected.",
        ),
        Entry(
            _DEEP,
            "inspect",
            "images have more than 8 bits per channel",
            "PNG, TIFF, PGM, PPM and JPEG 2000 can store 16 bits per channel, and TIFF 32 bits and floats. They "
            "are read as 8 bits, as Pillow's convert() does: grey values above 255 become 255, and colours lose "
            "their lower bits.",
            f"Reads the headers of up to {_MOST} images spread over the source ({_MOST_REMOTE} if it is remote), "
            f"in at most {_MOST_SHARDS} shards.",
            "If the values matter, as in depth maps and medical images, read PNGs and TIFFs with "
            '`.decode(dtype="uint16")`, `"float32"` or `"native"`, and store others as .npy arrays.',
            "The values themselves are not read: grey images whose values are all below 256 lose no precision.",
        ),
    ]


def look(
    source: str,
    format: str | None,
    fields: str | None,
    images: str | None = None,
    split: str | None = None,
    config: str | None = None,
) -> StoredImages | None:
    """Examines some images, spread over the source. Returns None if the source cannot be opened or contains no encoded
    images.

    The arguments are the same as for :func:`feedline.open`.

    Reads whole images and writes nothing next to the source.
    """
    seen = StoredImages()
    with contextlib.suppress(ConfigError, DataError, StorageError):
        _look_at_some(source, format, fields, annotations_of("inspect", images, split, None, config), seen)
    return seen if seen.looked_at else None


def look_at_all(
    source: str,
    format: str | None,
    fields: str | None,
    images: str | None = None,
    split: str | None = None,
    config: str | None = None,
    *,
    on: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredImages | None:
    """Like :func:`look`, but examines all images.

    `on`: ``"ray"`` or ``"ray://HOST:PORT"`` examines shards, or 4,096 samples of a folder, as tasks of a Ray cluster.
    `progress` is called with the numbers of examined and of all parts.
    """
    annotations = annotations_of("inspect", images, split, None, config)
    if (rows := opened_rows(source, format, fields, annotations)) is not None:
        return _look_at_rows(rows._engine, range(len(rows)), progress or (lambda done, total: None))
    spec = spec_of(source, format, fields, None, "skip", annotations=annotations)
    names = spec.source.split("::")
    stored = _engine.StoredSource(spec.source)
    if not stored.is_remote:
        names = [os.fsdecode(name) for name in stored.shards().names]
    parts: list[tuple[str, range | None]] = [(name, None) for name in names]
    if len(names) == 1:
        with _opened_part(spec, names[0]) as dataset:
            count = len(dataset)
        parts = [(names[0], range(first, min(first + _SLICE, count))) for first in range(0, count, _SLICE)]
    tell = progress or (lambda done, total: None)
    seen = StoredImages()
    made = (_seen_in_part(spec, part) for part in parts)
    if on is not None:
        made = (one for _, one in ray_tasks.run("inspect", on, _seen_in_part, spec, parts))
    for done, one in enumerate(made, 1):
        seen.merge(one)
        tell(done, len(parts))
    return seen if seen.looked_at else None


def _look_at_rows(dataset: _engine.Dataset, indices: range, tell: Callable[[int, int], None]) -> StoredImages | None:
    seen = StoredImages()
    if not any(kind == "image" for _, kind, *_ in dataset.roles()):
        return None
    for index in indices:
        seen.add(dataset.encoded(index))
        tell(index + 1, len(indices))
    return seen if seen.looked_at else None


def _seen_in_part(spec: SourceSpec, part: tuple[str, range | None]) -> StoredImages:
    name, indices = part
    seen = StoredImages()
    with _opened_part(spec, name) as dataset:
        for index in range(len(dataset)) if indices is None else indices:
            seen.add(dataset.encoded(index))
    return seen


@contextlib.contextmanager
def _opened_part(spec: SourceSpec, name: str) -> Iterator[_engine.Dataset]:
    """Opens one shard without writing an index next to it."""
    with tempfile.TemporaryDirectory(prefix="feedline-inspect-") as index:
        one = spec._replace(source=name, index_directory=index)
        try:
            dataset = one.open()
        except ConfigError:  # formats whose samples have all fields
            dataset = one._replace(missing="error").open()
        yield dataset


def _look_at_some(
    source: str, format: str | None, fields: str | None, annotations: dict[str, str], seen: StoredImages
) -> None:
    if (rows := opened_rows(source, format, fields, annotations)) is not None:
        for i in _spread(len(rows), _MOST_REMOTE):
            seen.add(rows._engine.encoded(i))
        return
    spec = spec_of(source, format, fields, None, "skip", annotations=annotations)
    names = spec.source.split("::")  # braces are not expanded yet
    stored = _engine.StoredSource(spec.source)
    if not stored.is_remote:
        names = [os.fsdecode(name) for name in stored.shards().names]
    chosen = [names[i] for i in _spread(len(names), _MOST_SHARDS)]
    most = _MOST_REMOTE if stored.is_remote else _MOST
    for name in chosen:
        with _opened_part(spec, name) as dataset:
            for i in _spread(len(dataset), most // len(chosen)):
                seen.add(dataset.encoded(i))


def _spread(count: int, most: int) -> list[int]:
    """Returns at most `most` evenly spaced numbers from 0 to `count` - 1."""
    return sorted({i * count // most for i in range(most)}) if count > most else list(range(count))
