# SPDX-License-Identifier: Apache-2.0
"""`feedline demo`: its generated images, the encoder that writes them, and its output."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from running_processes import HANG_S

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from rich.console import Console

import feedline
from feedline.bench.machine import jpeg
from feedline.cli.root import root
from feedline.demo import pictures, tour


def error_of(data: bytes, pixels: np.ndarray) -> float:
    """Compares a file's pixels with Pillow's: returns the root mean square of the difference."""
    with Image.open(io.BytesIO(data)) as image:
        return float(np.sqrt(((np.asarray(image, np.float64) - pixels) ** 2).mean()))


@pytest.mark.parametrize("quality", [1, 30, 50, 75, 90, 100])
@pytest.mark.parametrize("shape", [(64, 96), (33, 17), (1, 1), (16, 7)])
def test_files_are_as_large_and_as_exact_as_pillows(shape: tuple[int, int], quality: int) -> None:
    rng = np.random.default_rng(quality)
    smooth = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize(shape[::-1])
    pixels = np.clip(np.asarray(smooth) + rng.normal(0, 12, (*shape, 3)), 0, 255).astype(np.uint8)
    data = jpeg.encode(pixels, quality)
    theirs = io.BytesIO()
    Image.fromarray(pixels).save(theirs, "JPEG", quality=quality)
    assert error_of(data, pixels) <= 1.03 * error_of(theirs.getvalue(), pixels) + 0.3
    assert len(data) <= 1.05 * len(theirs.getvalue()) + 64
    assert (np.abs(feedline.decode_image(data).astype(int) - np.asarray(Image.open(io.BytesIO(data)))) == 0).all()


@pytest.mark.parametrize("value", [0, 255])
def test_flat_and_longest_codes(value: int) -> None:
    flat = np.full((40, 40, 3), value, np.uint8)
    assert error_of(jpeg.encode(flat, 100), flat) < 1
    noise = np.random.default_rng(value).integers(0, 2, (48, 48, 3), dtype=np.uint8) * 255
    assert error_of(jpeg.encode(noise, 100), noise) < 130  # colours at half size are lost; codes of all lengths are not
    with Image.open(io.BytesIO(jpeg.encode(noise, 100))) as image:
        assert image.size == (48, 48) and image.load() is not None


def test_pictures_are_the_same_for_the_same_seed_and_can_be_distinguished(tmp_path: Path) -> None:
    made: list[int] = []
    one, two, other = (pictures.make(tmp_path / str(i), 2, seed=i // 2, done=made.append) for i in range(3))
    assert sum(made) == 6
    files = [sorted(path.relative_to(folder) for path in folder.rglob("*.jpg")) for folder in (one, two, other)]
    assert files[0] == files[1] == files[2] == [Path("dot/0000.jpg"), Path("ring/0000.jpg")]
    contents = [[(folder / file).read_bytes() for file in files[0]] for folder in (one, two, other)]
    assert contents[0] == contents[1] != contents[2]
    shapes = [pictures._shape(kind, 75, 100, np.random.default_rng(0)) for kind in range(len(pictures.CLASSES))]
    assert all(0.02 < shape.mean() < 0.8 for shape in shapes)
    assert all((a != b).mean() > 0.02 for i, a in enumerate(shapes) for b in shapes[:i])


def run_demo(*arguments: str) -> int:
    return root.main(["demo", "--seconds", "0.1", *arguments], standalone_mode=False)


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests cover `feedline bench --against torch`; torch's workers take seconds to start."""

    def refuse(source: str) -> None:
        raise tour.StockLoaderMissing("needs torch")

    monkeypatch.setattr(tour, "check_stock", refuse)
    monkeypatch.setattr(tour, "can_train", lambda: False)


@pytest.mark.usefixtures("without_torch")
def test_the_tour_on_own_photos(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_demo("--photos", str(folder), "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["split"] == {"train": 19, "valid": 2, "classes": 3}
    assert printed["resumed"] == {"batches": 5, "stopped_after": 2}
    assert printed["feedline"]["images_per_s"] > 0 and "torch" not in printed
    assert run_demo("--photos", str(folder)) == 0
    said = capsys.readouterr().out
    assert "21 photos in 3 classes" in said and "byte for byte" in said and f"feedline bench {folder}" in said


def test_sentences_are_folded_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    verb = importlib.import_module("feedline.cli.commands.demo")
    monkeypatch.setattr(verb, "OUT", Console(file=io.StringIO(), force_terminal=True, highlight=False, width=76))
    figures = {"samples": 200, "feedline": {"images_per_s": 9, "cpu_s_per_1000_images": 1, "first_batch_s": 1}}
    parts = {"train": 180, "valid": 20, "classes": 10}
    epochs = [{"loss": 2.3, "seconds": 1.0, "waited_s": 0.1}, {"loss": 1.5, "seconds": 1.0, "waited_s": 0.3}]
    verb._print(figures, parts, {"batches": 6, "stopped_after": 3}, epochs, "photos")
    said = verb.OUT.file.getvalue().splitlines()
    assert max(len(line) for line in said) <= 76
    assert "and resumed with one thread: the same batches, byte for byte" in " ".join(said)
    assert "for 2 epochs in 2.0 s, 20% of it waiting for data: the loss went from 2.30 to 1.50" in " ".join(said)


@pytest.mark.usefixtures("without_torch")
def test_a_resume_that_gives_other_batches_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tour, "_digests", lambda *_, **options: (["a", "b"] if options["stop"] is None else ["c"], {}))
    assert run_demo("--photos", str(folder)) == 3
    assert "different batches" in capsys.readouterr().err


def test_a_small_network_learns_the_generated_photos(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = str(pictures.make(tmp_path, 100))
    done: list[int] = []
    first, *_, last = tour.trained(source, 6, done.append)
    assert sum(done) == 6 and last["loss"] < first["loss"] < 4
    assert 0 <= last["waited_s"] <= last["seconds"]


def test_help_imports_no_verb() -> None:
    script = "import sys; sys.argv = ['feedline', '--help']; from feedline.cli import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=HANG_S)
    imported = set(done.stdout.splitlines()[-1].split())
    assert "diagnose" in done.stdout and not imported & {"numpy", "rich", "torch", "importlib.metadata", "asyncio"}
    assert not {name for name in imported if name.startswith(("feedline.cli.commands.bench", "feedline.diagnose"))}
