# SPDX-License-Identifier: Apache-2.0
"""Contact sheets: augmented samples with their masks, boxes, keypoints and labels, drawn with Pillow."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from ... import _engine
from ...errors import ConfigError, Error

if TYPE_CHECKING:
    from PIL import Image as PillowImage

_CELL = 160  # longer side of a picture, in pixels
_GAP = 6
_WIDTH = 1400  # approximate width of the sheet
_CAPTION = 14  # height of a line of text, in pixels
_BACKGROUND = (32, 32, 32)
_DAMAGED = (160, 24, 24)
_TEXT = (235, 235, 235)
_MASK_SHARE = 0.45  # opacity of a label's colour over the image
# Colours that are distinguishable with most kinds of colour blindness: Okabe and Ito, "Color Universal Design", 2008.
_COLOURS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0), (204, 121, 167))
_NORMALIZE = re.compile(r"normalize\(mean=\(([^)]*)\), std=\(([^)]*)\)")
_PLACE = "feedline-show.png"

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


class DrawnDataset(Protocol):
    """A dataset whose samples can be drawn."""

    _engine: _engine.Dataset

    def __len__(self) -> int: ...

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def operations(self) -> Sequence[str]: ...

    def key(self, index: int, /) -> str: ...

    def collate(self, form: Literal["list"], /) -> Self: ...


class Sheet:
    """A contact sheet: notebooks display it, and :meth:`save` writes it to a file.

    Attributes:
        image: a ``PIL.Image.Image``, RGB.
        damaged: errors of samples that could not be read, which are drawn in red.
        path: the file to which the sheet was saved; None if it was not saved.
    """

    def __init__(self, image: PillowImage.Image, damaged: list[str]) -> None:
        self.image = image
        self.damaged = damaged
        self.path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> Sheet:
        """Saves the image in the format of the extension. Raises ConfigError if Pillow does not support the format."""
        check_path(path)
        self.image.save(path)
        self.path = Path(path)
        return self

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.image.save(stream, "PNG")
        return stream.getvalue()

    def __repr__(self) -> str:
        location = f" in {self.path}" if self.path else ""
        damaged = f", {len(self.damaged)} damaged" if self.damaged else ""
        return f"<feedline sheet, {self.image.width} x {self.image.height} pixels{location}{damaged}>"


def check_path(path: str | os.PathLike[str]) -> None:
    """Raises ConfigError if the extension of `path` is not an image format."""
    image, _ = _pillow()
    name = os.fspath(path)
    extension = os.path.splitext(name)[1].lower()
    if image.registered_extensions().get(extension) not in image.SAVE:
        raise ConfigError(f"show: {name!r} does not have an image file's extension, such as .png")


def show(dataset: DrawnDataset, n: int, epochs: int, seed: int, path: str | os.PathLike[str] | None) -> Sheet:
    if path is not None:
        check_path(path)
    sheet = sheet_of(dataset, n, epochs, seed)
    if path is not None:
        return sheet.save(path)
    return sheet if _is_notebook() else sheet.save(_PLACE)


def sheet_of(
    dataset: DrawnDataset, n: int, epochs: int, seed: int, step: Callable[[int], None] = lambda samples: None
) -> Sheet:
    """Draws `n` evenly spaced samples, with the results of all `epochs` side by side; calls `step(1)` after each
    sample.
    """
    painter = _Painter(dataset)
    count = min(n, len(dataset))
    damaged: list[str] = []
    tiles = []
    for index in (i * len(dataset) // count for i in range(count)):
        try:
            cells = [cell for epoch in range(epochs) for cell in painter.cells(index, seed, epoch)]
        except Error as error:
            damaged.append(f"{dataset.key(index)}: {error}")
            cells = [painter.damaged()]
        tiles.append(_in_one_row(cells))
        step(1)
    return Sheet(_stacked(tiles), damaged)


def _pillow() -> tuple[Any, Any]:
    """Returns (Image, ImageDraw)."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise ConfigError("show: Pillow is required; pip install pillow") from None
    return Image, ImageDraw


class _Role(NamedTuple):
    kind: str
    format: str


class _Painter:
    """Draws samples of a dataset."""

    def __init__(self, dataset: DrawnDataset) -> None:
        self._pillow, self._draw = _pillow()
        self._classes = dataset.classes
        roles = dataset._engine.roles()
        if not any(kind == "image" or (name == "image" and kind != "volume") for name, kind, *_ in roles):
            raise ConfigError("show: the samples of this dataset have no image")
        self._engine = dataset.collate("list")._engine  # images of any size
        self._roles = {name: _Role(kind, form) for name, kind, form, _ in self._engine.roles()}
        matches = (_NORMALIZE.match(operation) for operation in dataset.operations)
        self._normalized = [tuple(_numbers(text) for text in match.groups()) for match in matches if match]

    def cells(self, index: int, seed: int, epoch: int) -> Iterator[PillowImage.Image]:
        fields = dict(self._engine.sample(index, seed, epoch))
        pictures = [pixels for name, value in fields.items() for pixels in self._pictures(name, value)]
        if not pictures:
            raise ConfigError("show: the samples of this dataset have no image")
        caption = self._caption(fields)
        for number, pixels in enumerate(pictures):
            yield self._cell(pixels, fields if number == 0 else {}, caption if number == 0 else "")

    def damaged(self) -> PillowImage.Image:
        return self._pillow.new("RGB", (_CELL, _CELL), _DAMAGED)

    def _pictures(self, name: str, value: Any) -> list[Pixels]:
        """Returns an image or several stacked images, each (height, width, 3)."""
        kind = self._roles[name].kind if name in self._roles else "image"  # a view's name is not a stored field
        if kind != "image" or not isinstance(value, np.ndarray) or value.ndim not in (3, 4):
            return []
        planes = value if value.ndim == 4 else value[None]
        if planes.shape[1] not in (1, 3):
            return []
        return [self._pixels(one) for one in planes]

    def _pixels(self, planes: Any) -> Pixels:
        """Converts (1 or 3, height, width) of any dtype to (height, width, 3) uint8, undoing normalisation."""
        if planes.dtype != np.uint8:
            values = planes.astype(np.float32)
            for mean, std in reversed(self._normalized):
                values = values * np.array(std, np.float32)[:, None, None] + np.array(mean, np.float32)[:, None, None]
            planes = np.clip(np.rint(values * 255), 0, 255).astype(np.uint8)
        pixels: Pixels = np.broadcast_to(planes, (3, *planes.shape[1:])).transpose(1, 2, 0)
        return pixels

    def _caption(self, fields: dict[str, Any]) -> str:
        for name, value in fields.items():
            if name in self._roles and self._roles[name].kind == "value" and np.ndim(value) == 0:
                label = int(value)
                return self._classes[label] if 0 <= label < len(self._classes) else f"{name} {label}"
        texts = (value for value in fields.values() if isinstance(value, str))
        return next(iter(next(texts, "").splitlines()), "")

    def _cell(self, pixels: Pixels, fields: dict[str, Any], caption: str) -> PillowImage.Image:
        height, width = pixels.shape[:2]
        scale = _CELL / max(height, width)
        image = self._pillow.fromarray(np.ascontiguousarray(self._masked(pixels, fields)))
        image = image.resize((max(1, round(width * scale)), max(1, round(height * scale))))
        cell = self._pillow.new("RGB", (_CELL, _CELL + _CAPTION), _BACKGROUND)
        left, top = (_CELL - image.width) // 2, (_CELL - image.height) // 2
        self._paint(self._draw.Draw(image), fields, scale)
        cell.paste(image, (left, top))
        self._draw.Draw(cell).text((2, _CELL + 1), caption[: _CELL // 6], fill=_TEXT)
        return cell

    def _masked(self, pixels: Pixels, fields: dict[str, Any]) -> Pixels:
        """Overlays masks: each label has a colour, except for label 0."""
        for name, value in fields.items():
            if name in self._roles and self._roles[name].kind == "mask" and value.shape == pixels.shape[:2]:
                colours = np.array(_COLOURS, np.float32)[(value.astype(np.int64) - 1) % len(_COLOURS)]
                share = np.where(value[..., None] > 0, np.float32(_MASK_SHARE), np.float32(0))
                pixels = np.rint(pixels * (1 - share) + colours * share).astype(np.uint8)
        return pixels

    def _paint(self, draw: Any, fields: dict[str, Any], scale: float) -> None:
        for name, value in fields.items():
            role = self._roles.get(name)
            if role is None or value is None:
                continue
            if role.kind == "boxes":
                labels = _labels_of(fields, len(value))
                for number, corners in enumerate(_corners(np.asarray(value, np.float64), role.format) * scale):
                    colour = _COLOURS[(labels[number] if labels is not None else number) % len(_COLOURS)]
                    if np.isfinite(corners).all():
                        left, right = sorted(corners[::2])
                        top, bottom = sorted(corners[1::2])
                        draw.rectangle((left, top, right, bottom), outline=colour)
                        if labels is not None:
                            location, label = (left + 2, top + 1), str(labels[number])
                            draw.rectangle(draw.textbbox(location, label), fill=_BACKGROUND)
                            draw.text(location, label, fill=colour)
            elif role.kind == "keypoints":
                for x, y in np.asarray(value, np.float64).reshape(-1, 2) * scale:
                    if np.isfinite((x, y)).all():
                        draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=_COLOURS[0])


def _labels_of(fields: dict[str, Any], count: int) -> list[int] | None:
    """Returns the labels of the boxes, from the first field with `count` integers; None if no field has this shape."""
    for value in fields.values():
        if isinstance(value, np.ndarray) and value.shape == (count,) and value.dtype.kind in "iu":
            return [int(label) for label in value]
    return None


def _corners(boxes: Any, form: str) -> Any:
    if form == "XYWH":
        return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    if form == "CXCYWH":
        return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)
    return boxes


def _in_one_row(cells: Sequence[PillowImage.Image]) -> PillowImage.Image:
    from PIL import Image

    tile = Image.new("RGB", (len(cells) * (_CELL + 2), cells[0].height), _BACKGROUND)
    for number, cell in enumerate(cells):
        tile.paste(cell, (number * (_CELL + 2), 0))
    return tile


def _stacked(tiles: Sequence[PillowImage.Image]) -> PillowImage.Image:
    """Arranges the tiles in rows, with as many tiles per row as fit."""
    from PIL import Image

    width, height = max(tile.width for tile in tiles) + _GAP, max(tile.height for tile in tiles) + _GAP
    columns = max(1, min(len(tiles), _WIDTH // width))
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * width + _GAP, rows * height + _GAP), _BACKGROUND)
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % columns * width + _GAP, number // columns * height + _GAP))
    return sheet


def _numbers(text: str) -> list[float]:
    return [float(number) for number in text.split(",") if number.strip()]


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"
