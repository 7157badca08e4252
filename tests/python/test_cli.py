# SPDX-License-Identifier: Apache-2.0
"""The `feedline` command, run as people run it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import made_annotations
import made_data
import numpy as np
import pytest
from PIL import Image
from running_processes import HANG_S, until

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from fields.made_fields import npy

import feedline
from feedline import packing
from feedline.bench import orders
from feedline.cli import root
from feedline.data.inspect import stored_images

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def run(*arguments: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def test_help_names_the_verbs() -> None:
    printed = run("--help").stdout
    assert "inspect" in printed and "bench" in printed
    assert run("--version").stdout.startswith("feedline, version ")


def test_inspect_counts_a_healthy_folder(folder: Path) -> None:
    found = json.loads(run("inspect", folder, "--json").stdout)
    assert (found["format"], found["samples"], found["findings"]) == ("folder", 21, [])
    assert sum(found["classes"].values()) == 21
    assert found["bytes"] == sum(path.stat().st_size for path in folder.rglob("*.jpg"))
    assert "21 samples" in run("inspect", folder).stdout


def test_inspect_counts_one_sample_as_one(tmp_path: Path) -> None:
    image = tmp_path / "one" / "apple" / "0.jpg"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"x" * 1500)
    printed = run("inspect", tmp_path / "one").stdout
    assert "folder: 1 sample, 1.5 kB\nimages of 1.5 kB, encoded\n" in printed


def test_inspect_reports_what_a_reader_would_drop(tars: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.tar"
    cut.write_bytes(tars[0].read_bytes()[:-1024])
    result = run("inspect", cut, status=1)
    assert "error" in result.stdout and "no_end_of_archive" in result.stdout


def test_the_contact_sheet_shows_the_images(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    run("inspect", folder, "--show", sheet, "--images", "6")
    pixels = np.asarray(Image.open(sheet))
    assert pixels.ndim == 3 and pixels.shape[1] > pixels.shape[0] > 100
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000, "photos have many colours"


def test_the_contact_sheet_is_the_one_that_show_draws(folder: Path, tmp_path: Path) -> None:
    """With labels, boxes and masks: of a folder, a detection set and images with masks."""
    drawn = {name: np.zeros((40, 50, 3), np.uint8) for name in ("jpg", "mask.png")}
    drawn["jpg"][:], drawn["mask.png"][5:20, 5:30] = 120, 3
    files = {name: made_data.encoded(pixels, "PNG" if "png" in name else "JPEG") for name, pixels in drawn.items()}
    files["boxes.npy"] = npy(np.array([[4, 6, 30, 25], [20, 2, 45, 38]], np.float32))
    files["labels.npy"] = npy(np.array([5, 9]))
    made_data.write_tar(tmp_path / "set.tar", [(f"{i}.{name}", data) for i in range(3) for name, data in files.items()])
    seen = []
    for source, fields in (
        (folder, None),
        (tmp_path / "set.tar", "jpg"),
        (tmp_path / "set.tar", "jpg boxes.npy:boxes"),
        (tmp_path / "set.tar", "jpg boxes.npy:boxes labels.npy"),
        (tmp_path / "set.tar", "jpg mask.png"),
    ):
        sheet, same = tmp_path / "sheet.png", tmp_path / "same.png"
        chosen = ("--fields", fields) if fields else ()
        run("inspect", source, "--show", sheet, "--images", "2", *chosen, status=int(bool(chosen)))  # 1: others unread
        feedline.open(source, fields=fields).show(2, 1, path=same)
        pixels = np.asarray(Image.open(sheet))
        np.testing.assert_array_equal(pixels, np.asarray(Image.open(same)), f"{source} {fields}")
        seen.append(pixels.tobytes())
    assert len(set(seen)) == len(seen), "boxes, their labels and masks are seen"
    assert (
        "does not have an image file's extension" in run("inspect", folder, "--show", tmp_path / "x", status=2).stderr
    )


def test_a_damaged_image_is_a_red_cell_and_a_problem(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "train")
    first = sorted(folder.rglob("*.jpg"))[0]
    first.write_bytes(first.read_bytes()[:300])
    sheet = tmp_path / "sheet.png"
    printed = run("inspect", folder, "--show", sheet, status=1).stdout
    assert first.name in printed
    assert (np.asarray(Image.open(sheet))[40, 40] == (160, 24, 24)).all()


def test_bench_tells_where_the_time_goes(folder: Path) -> None:
    arguments = ("bench", folder, "--seconds", "0.2", "--batch-size", "4", "--num-workers", "2")
    result = json.loads(run(*arguments, "--json").stdout)
    assert result["feedline"]["threads"] == 2
    assert result["feedline"]["images_per_s"] > 0
    assert result["decode_limit"]["images_per_s"] > 0
    stages = result["feedline"]["stages"]
    # but for what was filled ahead when the clock started, and when it stopped: at most 32 batches of 4
    assert stages["decode"]["items"] == pytest.approx(result["feedline"]["images"], abs=128)
    assert stages["decode"]["us_per_item"] > 0
    assert "decode limit" in run(*arguments).stdout


def test_pixels_are_inspected_and_measured(folder: Path, tmp_path: Path) -> None:
    path, sheet = tmp_path / "small.pixels", tmp_path / "sheet.png"
    packed = json.loads(run("pack", folder, path, "--raw", "40", "--json").stdout)
    assert (packed["samples"], packed["bytes"]) == (21, path.stat().st_size)
    same = zip(feedline.open(path).center_crop(32), feedline.open(folder).resize(40).center_crop(32), strict=True)
    assert all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in same)
    assert "feedline.open(" in run("pack", folder, path, "--raw", "40").stdout, "it is there"
    run("pack", folder, path, "--raw", "41", status=2)  # other pixels
    run("pack", folder, path, "--raw", "40", "--shuffle", status=2)
    run("pack", folder, path, status=2)  # a file
    assert ", as pixels\n" in run("inspect", path).stdout
    found = json.loads(run("inspect", path, "--show", sheet, "--json").stdout)
    assert (found["format"], found["samples"], found["contact_sheet"]["damaged"]) == ("pixels", 21, [])
    assert sum(found["classes"].values()) == 21
    assert len(np.unique(np.asarray(Image.open(sheet)).reshape(-1, 3), axis=0)) > 1000, "photos have many colours"
    arguments = ("bench", path, "--seconds", "0.2", "--batch-size", "4", "--size", "32")
    result = json.loads(run(*arguments, "--json").stdout)
    assert result["feedline"]["images_per_s"] > 0
    assert "decode_limit" not in result
    assert "decode limit" not in run(*arguments).stdout


def test_bench_against_torch(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    result = json.loads(
        run("bench", folder, "--seconds", "0.2", "--batch-size", "4", "--against", "torch", "--json").stdout
    )
    assert result["torch"]["images_per_s"] > 0
    assert result["speed_up"] == pytest.approx(result["feedline"]["images_per_s"] / result["torch"]["images_per_s"])


def test_exit_statuses(tmp_path: Path) -> None:
    run("inspect", status=2)
    run("no-such-verb", status=2)
    run("inspect", tmp_path / "missing", status=3)
    empty = tmp_path / "empty"
    empty.mkdir()
    run("bench", empty, status=2)


def threads_of(pid: int) -> str:
    names = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names.append((thread / "comm").read_text())
    return "".join(names)


@pytest.mark.parametrize(
    ("error", "what"), [(MemoryError(), "memory"), (RuntimeError("can't start new thread"), "memory or threads")]
)
def test_missing_memory_is_reported(
    error: Exception, what: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(feedline, "inspect", fails)
    assert root.run(["inspect", str(folder)]) == 3
    assert capsys.readouterr().err.startswith(f"feedline: not enough {what}: raise the limits (ulimit -v")


def test_interrupting_ends_with_130(folder: Path) -> None:
    command = [*COMMAND, "bench", str(folder), "--seconds", str(HANG_S)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    until(lambda: "feedline" in threads_of(process.pid), "the engine's threads run")
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert "Traceback" not in printed


IMPATIENT = """
import signal, sys
from feedline.cli import interrupting
{change}
interrupting.first_alone()
try:
    signal.raise_signal(signal.SIGINT)
    print("went on")
except KeyboardInterrupt:
    for _ in range(100):
        signal.raise_signal(signal.SIGINT)
    print("cleared up")
"""


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        ("", "cleared up"),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "went on"),  # as nohup leaves it
        ("interrupting._PATIENCE_S = 0", ""),  # what hangs when it clears up can be ended
    ],
)
def test_only_the_first_ctrl_c_is_heard_until_all_is_cleared_up(change: str, printed: str) -> None:
    command = [sys.executable, "-c", IMPATIENT.format(change=change)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert result.stdout.strip() == printed
    assert (result.returncode == 0) == bool(printed)


@pytest.mark.parametrize("name", ["click", "rich", "fastjsonschema"])
def test_reports_what_to_install_when_its_packages_are_missing(name: str, tmp_path: Path) -> None:
    hidden = f"import sys; sys.modules[{name!r}] = None; from feedline.cli import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", hidden, "--help"], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == 2
    assert f"needs {name}, which is not installed; run: pip install {name}" in result.stderr


def test_reports_what_to_install_when_a_package_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError(\"No module named 'click'\", name='click')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    result = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, env=environment, timeout=HANG_S)
    assert result.returncode == 2
    assert "run: pip install click" in result.stderr


def test_shuffle_quality_of_made_up_samples() -> None:
    printed = run("bench", "--shuffle-quality", "--samples", "20000", "--json").stdout
    result = json.loads(printed)
    assert (result["samples"], result["shards"]) == (20000, 20)
    passed = {name: order["passed"] for name, order in result["orders"].items()}
    assert passed["Feedline global"] and passed["NumPy"] and not passed["buffer of 1,000"]
    for order in result["orders"].values():
        assert len(order["statistics"]) == 6 and len(order["displacement_quantiles"]) == 3
        for statistic in order["statistics"].values():
            assert statistic["passed"] == (statistic["p_value"] >= 1e-4)


def test_shuffle_quality_of_a_source_and_what_it_refuses(tars: list[Path], folder: Path, tmp_path: Path) -> None:
    printed = run("bench", "::".join(map(str, tars)), "--shuffle-quality").stdout
    assert "21 samples in 3 shards" in printed and "shards" in printed and "chi-square" in printed
    photos = feedline.open(folder)
    names = [contender.name for contender in orders.contenders(len(photos), photos._engine.block_ends())]
    assert "Feedline global" in names and "Feedline shards" not in names
    assert "either SOURCE or --samples" in run("bench", "--shuffle-quality", status=2).stderr
    assert "give a SOURCE" in run("bench", status=2).stderr
    few = made_data.make_folder(tmp_path / "few", per_class=1)
    assert "3 samples are too few" in run("bench", few, "--shuffle-quality", status=2).stderr


def test_a_split_and_a_folder_of_images_are_reported(tmp_path: Path) -> None:
    voc = made_annotations.voc(tmp_path / "voc", 12)
    coco = made_annotations.coco(tmp_path / "coco", 5)
    elsewhere = (tmp_path / "coco/train2017").rename(tmp_path / "elsewhere")
    sheet = tmp_path / "sheet.png"
    shown = ("--show", sheet, "--images", "2")
    assert json.loads(run("inspect", voc, "--split", "val", *shown, "--json").stdout)["samples"] == 3
    assert sheet.exists()
    assert json.loads(run("verify", voc, "--split", "train", "--json").stdout)["samples"] == 9
    assert json.loads(run("inspect", coco, "--image-folder", elsewhere, "--json").stdout)["samples"] == 5
    assert json.loads(run("verify", coco, "--image-folder", elsewhere, "--json").stdout)["samples"] == 5
    packed = ("pack", coco, tmp_path / "out", "--image-folder", elsewhere, "--to", "mds", "--samples-per-shard", "2")
    assert json.loads(run(*packed, "--json").stdout)["shards"] == 3
    assert packing.shard_count(coco, images=elsewhere, samples_per_shard=2, to="mds") == 3
    found = feedline.open(tmp_path / "out", fields=("image", "boxes:boxes", "labels")).collate("list")
    original = feedline.open(coco, images=elsewhere).collate("list")
    assert sum(len(sample.boxes) for sample in original) > 0
    for i in range(5):
        assert found[i].boxes.tolist() == original[i].boxes.tolist()
        assert found[i].labels.tolist() == original[i].labels.tolist()


def test_images_of_a_split_and_a_folder_are_looked_at(tmp_path: Path) -> None:
    voc = made_annotations.voc(tmp_path / "voc", 12)
    coco = made_annotations.coco(tmp_path / "coco", 5)
    elsewhere = (tmp_path / "coco/train2017").rename(tmp_path / "elsewhere")
    for source, said, looked_at in ((voc, {"split": "val"}, 3), (coco, {"images": str(elsewhere)}, 5)):
        seen = stored_images.look(str(source), None, None, **said)
        assert seen is not None and seen.looked_at == looked_at


def test_the_command_runs_as_a_module() -> None:
    """For environments that are not on the path."""
    ran = subprocess.run([sys.executable, "-m", "feedline", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == run("--version").stdout


def test_verify_reports_last_whether_images_were_decoded(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "train", per_class=2)
    assert (
        run("verify", folder).stdout.splitlines()[-1] == "images were not decoded; pass --decode to check them as well"
    )
    assert "not decoded" not in run("verify", folder, "--decode").stdout
    (folder / "birch" / "cut.jpg").write_bytes((folder / "birch" / "000.jpg").read_bytes()[:-400])
    assert "no problems found" in run("verify", folder).stdout
    assert "undecodable_sample" in run("verify", folder, "--decode", status=1).stdout


def test_verify_states_the_fix_of_equal_problems_once(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "train", per_class=2)
    photos = sorted(folder.rglob("*.jpg"))
    for photo in photos[:3]:
        photo.write_bytes(photo.read_bytes()[:300])
    lines = run("verify", folder, "--decode", status=1).stdout.splitlines()
    assert sum("undecodable_sample" in line for line in lines) == 3
    assert [line for line in lines if "Copy the sample again" in line] == [lines[-1]]


def test_a_folder_without_classes_names_the_fields_that_open_it(tmp_path: Path) -> None:
    classes = made_data.make_folder(tmp_path / "train", per_class=2)
    flat = tmp_path / "flat"
    (classes / "birch").rename(flat)
    suggested = re.search(r'fields="(\{key\}\.\w+)"', " ".join(run("inspect", flat, status=1).stdout.split()))
    assert suggested is not None
    assert len(feedline.open(flat, fields=suggested[1])) == len(list(flat.iterdir()))


def test_columns_of_words_are_left_and_of_numbers_right(capsys: pytest.CaptureFixture[str]) -> None:
    from feedline.cli.console import table

    rows = [("first", "1,234.5", "[red]+12%[/]", "a word"), ("x", "7", "-", "some other words")]
    table(("name", "rate", "change", "why"), rows)
    first, second = (line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│"))
    assert [cell.startswith("  ") for cell in second] == [False, True, True, False]
    assert first[3].startswith(" a word  ")


@pytest.mark.parametrize(("share", "begins"), [(0.5, "50% of this machine's"), (1.06, "at this machine's")])
def test_no_loader_is_reported_to_be_above_the_limit(share: float, begins: str) -> None:
    from feedline.cli.commands.bench import _share_of_limit

    assert _share_of_limit(share).startswith(begins) and "106%" not in _share_of_limit(share)
