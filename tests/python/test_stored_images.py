# SPDX-License-Identifier: Apache-2.0
"""`feedline inspect` counts the formats of stored images, and for images with an EXIF rotation, describes how to apply
it.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import made_data
import pytest
from made_png import PALETTE, RGB, Kind, palette, png
from PIL import Image

from feedline.data.inspect import stored_images

pytest.importorskip("click", reason="click, for the command line, is not installed")
pytest.importorskip("rich", reason="rich, for the command line, is not installed")

ORIENTATION = 0x0112


def jpeg(mode: str = "RGB", orientation: int | None = None, **options: Any) -> bytes:
    stream, exif = io.BytesIO(), Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    Image.fromarray(made_data.photo(1, 40, 30)).convert(mode).save(stream, "JPEG", exif=exif, **options)
    return stream.getvalue()


IMAGES = [
    *(("jpg", jpeg(orientation=number)) for number in (None, 1, 6, 6, 8)),
    ("jpg", jpeg(progressive=True)),
    ("jpg", jpeg(progressive=True, orientation=3)),
    ("jpg", jpeg("CMYK")),
    ("png", png(Kind(PALETTE, 4, chunks=[palette(16)]))),
    ("png", png(Kind(RGB, 16, interlaced=True))),
]
COUNTS = {
    "looked_at": 10,
    "turned_by_exif": 4,
    "orientations": {"3": 1, "6": 2, "8": 1},
    "formats": {"jpeg": 8, "png": 2},
    "stored": {"progressive": 2, "CMYK": 1, "palette": 1, "interlaced": 1, "16 bits": 1},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "set" / "a").mkdir(parents=True)
    for number, (kind, data) in enumerate(IMAGES):
        (tmp_path / "set" / "a" / f"{number}.{kind}").write_bytes(data)
    return tmp_path / "set"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "tars").mkdir()
    for number, (kind, data) in enumerate(IMAGES):
        made_data.write_tar(
            tmp_path / "tars" / f"{number}.tar", [(f"x{number}.{kind}", data), (f"x{number}.cls", b"1")]
        )
    return tmp_path / "tars"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    from feedline.cli.root import run

    status = run(["inspect", *arguments])
    return status, capsys.readouterr().out


def test_images_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, printed = run(capsys, str(folder), "--json")
    found = json.loads(printed)
    assert status == 0  # a note is not a problem
    assert found["images"] == COUNTS
    assert list(found["images"]["formats"]) == ["jpeg", "png"]  # most frequent first
    finding, deep = found["findings"]
    assert (deep["code"], deep["severity"]) == ("deep_pixels", "note")
    assert "1 of 10 images examined have 16 bits per channel and are read as 8 bits" in deep["text"]
    assert (finding["code"], finding["severity"]) == ("turned_by_exif", "note")
    assert "4 of 10 examined images" in finding["text"] and ".decode(apply_exif_orientation=True)" in finding["text"]
    status, printed = run(capsys, str(folder))
    text = " ".join(printed.split())
    assert "of 10 examined: 8 jpeg, 2 png, 2 progressive" in text and "4 with an EXIF orientation" in text
    assert "apply_exif_orientation=True" in text
    assert "1 with 16 bits per channel" in text and "nothing that a reader would drop" not in text


def test_nothing_is_reported_for_photos_that_are_upright(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(jpeg(orientation=1))
    found = json.loads(run(capsys, str(tmp_path), "--json")[1])
    assert found["findings"] == [] and found["images"]["turned_by_exif"] == 0 and found["images"]["stored"] == {}


def test_some_shards_are_looked_at_and_no_index_is_left(shards: Path) -> None:
    seen = stored_images.look(str(shards / "{0..9}.tar"), None, "jpg;png")
    assert seen is not None and seen.looked_at == 4  # shards 0, 2, 5 and 7
    assert seen.orientations == {6: 1} and seen.stored == {"progressive": 1, "CMYK": 1}
    assert sorted(path.suffix for path in shards.iterdir()) == [".tar"] * 10


def test_many_images_are_sampled_over_all_of_them(tmp_path: Path) -> None:
    members = [(f"{i:03}.jpg", jpeg(orientation=6) if i >= 450 else jpeg()) for i in range(500)]
    made_data.write_tar(tmp_path / "x.tar", members)
    seen = stored_images.look(str(tmp_path / "x.tar"), None, "jpg")
    assert seen is not None and (seen.looked_at, seen.turned) == (200, 20)


def test_images_that_are_none_and_sources_without_images_are_no_error(tmp_path: Path) -> None:
    assert stored_images.look(str(tmp_path / "missing"), None, None) is None
    made_data.write_tar(tmp_path / "x.tar", [("a.jpg", b"text"), ("b.jpg", jpeg())])
    seen = stored_images.look(str(tmp_path / "x.tar"), None, "jpg")
    assert seen is not None and seen.looked_at == 1
    made_data.write_tar(tmp_path / "y.tar", [("a.txt", b"text")])
    assert stored_images.look(str(tmp_path / "y.tar"), None, "txt") is None
