# SPDX-License-Identifier: Apache-2.0
"""Finds source pictures for photos.py: the distribution's wallpaper packages, the images of scikit-image and
scikit-learn, or a user's folder.
"""

from __future__ import annotations

import io
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
ENOUGH = 20  # sufficient number of pictures: two for each of ten classes

# Packages with photos are first. Packages that the distribution does not have are skipped. They are unpacked, never
# installed.
PACKAGES = (
    "lomiri-wallpapers-16.04",
    "lomiri-wallpapers-20.04",
    "ubuntu-wallpapers-noble",
    "ubuntu-wallpapers-jammy",
    "ubuntu-mate-wallpapers-photos",
    "mate-backgrounds",
    "ukui-wallpapers",
    "plasma-workspace-wallpapers",
)

# At quality 95, a photo of 500 x 375 takes 60 to 150 KB; a drawing or a gradient takes far less.
PHOTO_BYTES = 45_000
SMALLEST_SIDE = 300


@dataclass(frozen=True)
class Picture:
    """A source picture: its path, its size, and a 64-bit sketch that is similar for near copies."""

    path: Path
    width: int
    height: int
    jpeg_bytes: int
    sketch: int


def jpeg(image: Image.Image, quality: int) -> bytes:
    """Encodes an image as baseline JPEG, 4:2:0, like ImageNet's photos."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=2)
    return buffer.getvalue()


def load(path: Path, longest: int) -> Image.Image:
    """Returns the picture in RGB, downscaled so that no side is longer than ``longest``."""
    image = Image.open(path)
    image.draft("RGB", (longest, longest))
    image = image.convert("RGB")
    if max(image.size) > longest:
        scale = longest / max(image.size)
        image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.BOX)
    return image


def examine(path: Path) -> Picture | None:
    """Returns the picture at ``path``; None if it is not a photo, is too small or cannot be read."""
    try:
        image = load(path, 1000)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    width, height = image.size
    if min(width, height) < SMALLEST_SIDE:
        return None
    scale = 500 / max(width, height)
    small = image.resize((max(1, round(width * scale)), max(1, round(height * scale))), Image.Resampling.BICUBIC)
    area = small.width * small.height / (500 * 375)
    grey = small.convert("L").resize((8, 8), Image.Resampling.BOX).tobytes()
    mean = sum(grey) / 64
    sketch = sum((value > mean) << bit for bit, value in enumerate(grey))
    return Picture(path, width, height, round(len(jpeg(small, 95)) / area), sketch)


def distinct(pictures: list[Picture]) -> list[Picture]:
    """Removes near copies, such as a wallpaper in another size: their sketches differ in fewer than 6 of 64 bits."""
    kept: list[Picture] = []
    for picture in pictures:
        if all((picture.sketch ^ other.sketch).bit_count() >= 6 for other in kept):
            kept.append(picture)
    return kept


def photos_in(folder: Path, any_picture: bool, most: int | None = None) -> list[Picture]:
    """Returns the photos in ``folder`` and its subfolders, sorted by name. ``any_picture`` includes drawings and near
    copies. If there are more than ``most`` pictures, only every second, third, ... one is examined.
    """
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    paths = paths[:: -(-len(paths) // most)] if most and paths else paths
    found = [picture for path in paths if (picture := examine(path)) is not None]
    return found if any_picture else distinct([p for p in found if p.jpeg_bytes >= PHOTO_BYTES])


def unpack(package: str, cache: Path) -> Path | None:
    """Returns a folder of ``cache`` with the contents of a package; None if the distribution does not have it."""
    folder = cache / package
    if folder.is_dir():
        return folder
    downloads = cache / f"{package}.part"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    try:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        subprocess.run(["apt-get", "download", package], cwd=downloads, check=True, timeout=300, **quiet)
        archive = next(downloads.glob("*.deb"))
        subprocess.run(["dpkg-deb", "-x", archive, downloads / "x"], check=True, timeout=300, **quiet)
        (downloads / "x").rename(folder)
        return folder
    except (OSError, subprocess.SubprocessError, StopIteration):
        return None
    finally:
        shutil.rmtree(downloads, ignore_errors=True)


def from_packages(cache: Path, tell) -> list[Picture]:
    """Returns photos from wallpaper packages, examining packages until there are enough. ``tell(text)`` is called for
    each package.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return []
    pictures: list[Picture] = []
    for package in PACKAGES:
        tell(f"photos of {package}")
        folder = unpack(package, cache)
        if folder is not None:
            pictures = distinct(pictures + photos_in(folder, any_picture=False))
        if len(pictures) >= ENOUGH:
            break
    return pictures


def from_python_packages() -> list[Picture]:
    """Returns the photos in scikit-image and scikit-learn, if these are installed."""
    found: list[Picture] = []
    for module, below in (("skimage", "data"), ("sklearn", "datasets/images")):
        try:
            package = __import__(module)
        except ImportError:
            continue
        folder = Path(package.__file__).parent / below
        found += [p for p in photos_in(folder, any_picture=True) if p.jpeg_bytes >= PHOTO_BYTES / 2]
    return distinct(found)
