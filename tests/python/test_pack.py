# SPDX-License-Identifier: Apache-2.0
"""`feedline pack`: the same samples in tars, whatever happens in the meantime."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import made_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from running_processes import HANG_S

import feedline
from feedline import packing

pytest.importorskip("click", reason="the command line is not installed")
COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def run(*arguments: str | Path, status: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S, **options)
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the shards, and the manifest without the path of the source."""
    files = {path.name: path.read_bytes() for path in folder.glob("*.tar")}
    manifest = json.loads((folder / "feedline-pack.json").read_text())
    del manifest["source"]
    return files | {"manifest": json.dumps(manifest).encode()}


def members(folder: Path) -> list[tuple[str, bytes]]:
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                found.append((member.name, file.read()))
    return found


def samples(dataset: feedline.Dataset) -> list[tuple[bytes, int]]:
    """Returns pixels in full size, and labels."""
    small = dataset.resize((4, 4))
    images = (feedline.decode_image(dataset.encoded(i)) for i in range(len(dataset)))
    return [(image.tobytes(), int(small[i][1])) for i, image in enumerate(images)]


def test_a_folder_keeps_its_samples_labels_and_order(folder: Path, tmp_path: Path) -> None:
    report = packing.pack(folder, tmp_path / "out", samples_per_shard=8)
    assert (report.samples, report.shards, report.rewritten, report.skipped) == (21, 3, 0, [])
    packed = feedline.open(report.pattern)
    original = feedline.open(folder)
    assert [packed.encoded(i) for i in range(21)] == [original.encoded(i) for i in range(21)]
    assert samples(packed) == samples(original)
    assert packed.key(0) == "apple/000"
    assert json.loads((tmp_path / "out" / "feedline-pack.json").read_text())["classes"] == original.classes
    assert len(list((tmp_path / "out" / ".feedline").glob("*.feedline-index"))) == 3


def test_shards_know_their_classes_wherever_they_are(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "odd"
    shutil.copytree(folder, source)
    (source / "birch").rename(source / "50% birch.é")
    original = feedline.open(source)
    assert packing.pack(source, tmp_path / "out", samples_per_shard=8).shards == 3
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("000000.tar", "000002.tar"):  # without the manifest, the indexes and the intermediate file
        shutil.copy(tmp_path / "out" / name, elsewhere / name)
    shards = [str(path) for path in sorted(elsewhere.glob("*.tar"))]
    for _ in range(2):  # scanned, and then with the stored index
        packed = feedline.open(shards)
        assert packed.classes == original.classes == ["50% birch.é", "apple", "crow"]
    assert len(packed) == 13
    assert feedline.inspect(shards).classes == {"50% birch.é": 7, "apple": 1, "crow": 5}
    assert feedline.inspect(shards).findings == []
    again = packing.pack("::".join(shards), tmp_path / "again")
    assert feedline.open(again.pattern).classes == original.classes
    assert feedline.pack_pixels(packed, tmp_path / "kept.pixels").classes == original.classes
    assert samples(feedline.open(again.pattern)) == samples(packed)


def test_shards_of_two_packings_have_no_names_in_common(folder: Path, tars: list[Path], tmp_path: Path) -> None:
    (tmp_path / "other/ash").mkdir(parents=True)
    shutil.copy(folder / "apple/000.jpg", tmp_path / "other/ash")
    one = packing.pack(folder, tmp_path / "one").pattern
    other = packing.pack(tmp_path / "other", tmp_path / "two").pattern
    assert feedline.open(other).classes == ["ash"]
    for joined in ([one, other], [one, str(tars[0])], [str(tars[0]), one]):
        assert feedline.open(joined).classes == []
        (finding,) = feedline.inspect(joined).findings
        assert (finding.code, finding.severity) == ("class_names_differ", "warning")
    assert feedline.open(str(tars[0])).classes == []


def test_a_folder_of_an_earlier_version_is_not_gone_on_with(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "out")
    manifest = tmp_path / "out/feedline-pack.json"
    manifest.write_text(manifest.read_text().replace('"version": 2', '"version": 1'))
    with pytest.raises(feedline.DataError, match="a different version of Feedline; pack into another folder"):
        packing.pack(folder, tmp_path / "out")


def test_tars_keep_every_member(tmp_path: Path) -> None:
    image = made_data.encoded(made_data.photo(1, 40, 30))
    given_members = [
        member
        for i in range(5)
        for member in (
            (f"a.b/{i}.jpg", image),
            (f"a.b/{i}.cls", b"3"),
            (f"a.b/{i}.JSON", b"{}"),
            (f"a.b/{i}.empty", b""),
        )
    ]
    made_data.write_tar(tmp_path / "in.tar", given_members)
    packing.pack(tmp_path / "in.tar", tmp_path / "out")
    assert members(tmp_path / "out") == [(name.replace("JSON", "json"), content) for name, content in given_members]


def test_webdataset_reads_the_shards(folder: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    report = packing.pack(folder, tmp_path / "out", samples_per_shard=8)
    read = list(webdataset.WebDataset(report.pattern, shardshuffle=False))
    original = feedline.open(folder)
    assert [sample["jpg"] for sample in read] == [original.encoded(i) for i in range(21)]
    assert [int(sample["cls"]) for sample in read] == [label for _, label in samples(original)]


def test_names_that_readers_would_split_or_merge_stay_apart(tmp_path: Path) -> None:
    photos = {name: made_data.encoded(made_data.photo(i, 40, 30)) for i, name in enumerate(
        ["1.5.jpg", "1.jpg", "1.jpeg", "1.png", "1%2E5.jpg", ".hidden.jpg", "ä.jpg", "x" * 150 + ".JPEG"]
    )}  # fmt: skip
    source = tmp_path / "in"
    (source / "a.b").mkdir(parents=True)
    for name, content in photos.items():
        (source / "a.b" / name).write_bytes(content)
    (source / "a.b" / os.fsdecode(b"\xff\xfe.jpg")).write_bytes(b"\xff\xd8 no utf-8 name")
    report = packing.pack(source, tmp_path / "out")
    packed, original = feedline.open(report.pattern), feedline.open(source)
    assert [packed.encoded(i) for i in range(len(packed))] == [original.encoded(i) for i in range(len(original))]
    assert feedline.inspect(report.pattern).findings == []


@pytest.mark.parametrize("limits", [{"shard_bytes": 30_000}, {"samples_per_shard": 4}, {"shard_bytes": 1}])
def test_shards_keep_to_their_limit(folder: Path, tmp_path: Path, limits: dict[str, int]) -> None:
    packing.pack(folder, tmp_path / "out", **limits)
    shards = json.loads((tmp_path / "out" / "feedline-pack.json").read_text())["shards"]
    assert [shard["first"] for shard in shards] == [0, *(shard["end"] for shard in shards[:-1])]
    assert shards[-1]["end"] == 21
    for shard in shards:
        assert (tmp_path / "out" / shard["name"]).stat().st_size == shard["bytes"]
        assert shard["bytes"] <= limits.get("shard_bytes", 1 << 30) or shard["samples"] == 1
        assert shard["end"] - shard["first"] == shard["samples"] <= limits.get("samples_per_shard", 21)


def test_the_same_arguments_give_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for name, seed, jobs in (("a", 1, 1), ("b", 1, 4), ("c", 2, 4)):
        packing.pack(folder, tmp_path / name, samples_per_shard=5, shuffle=True, seed=seed, num_workers=jobs)
        time.sleep(0.01)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a") != contents(tmp_path / "c")
    assert sorted(members(tmp_path / "a")) == sorted(members(tmp_path / "c"))


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(6, 300),
    height=st.integers(1, 200),
    quality=st.integers(5, 100),
    subsampling=st.sampled_from(["4:4:4", "4:2:2", "4:2:0"]),
    optimised=st.booleans(),
    grey=st.booleans(),
    interval=st.integers(1, 40),
    corner=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)),
)
def test_restart_markers_keep_every_pixel_of_every_region(
    width: int, height: int, quality: int, subsampling: str, optimised: bool, grey: bool, interval: int,
    corner: tuple[float, float, float, float],
) -> None:  # fmt: skip
    pixels = made_data.photo(width * height, width, height)
    encoded = made_data.encoded(
        pixels[:, :, 0] if grey else pixels, quality=quality, optimize=optimised, comment=b"kept",
        icc_profile=b"profile", **({} if grey else {"subsampling": subsampling}),
    )  # fmt: skip
    extension, marked = packing.RestartMarkers(interval)("jpg", encoded)
    assert extension == "jpg" and marked != encoded
    expected, got = Image.open(io.BytesIO(encoded)), Image.open(io.BytesIO(marked))
    assert got.info == expected.info and got.mode == expected.mode
    whole = np.asarray(expected.convert("RGB"))
    assert np.array_equal(np.asarray(got.convert("RGB")), whole)
    left, right = sorted((int(corner[0] * (width - 1)), int(corner[1] * (width - 1))))
    top, bottom = sorted((int(corner[2] * (height - 1)), int(corner[3] * (height - 1))))
    region = feedline.decode_image(marked, (left, top, right + 1, bottom + 1))
    assert np.array_equal(region, whole[top : bottom + 1, left : right + 1])


def test_restart_markers_go_where_they_gain(tmp_path: Path) -> None:
    source = tmp_path / "in" / "class"
    source.mkdir(parents=True)
    large = made_data.photo(1, 500, 375)
    (source / "0.jpg").write_bytes(made_data.encoded(large))
    (source / "1.jpg").write_bytes(made_data.encoded(large, progressive=True))
    (source / "2.jpg").write_bytes(made_data.encoded(made_data.photo(2, 60, 50)))
    (source / "3.png").write_bytes(made_data.encoded(large, "PNG"))
    report = json.loads(run("pack", tmp_path / "in", tmp_path / "out", "--restart-interval", "auto", "--json").stdout)
    assert (report["files"], report["rewritten"]) == (4, 1)
    assert report["bytes_before"] < report["bytes_after"] < report["bytes_before"] * 1.1
    packed = dict(members(tmp_path / "out"))
    assert [packed[f"class/{i}"] == (source / i).read_bytes() for i in ("0.jpg", "1.jpg", "2.jpg", "3.png")] == [
        False, True, True, True,
    ]  # fmt: skip
    assert samples(feedline.open(report["pattern"])) == samples(feedline.open(tmp_path / "in"))


ARGUMENTS = ("--samples-per-shard", "3", "--shuffle", "--restart-interval", "2", "--num-workers", "2")


def test_killed_at_any_moment_it_resumes_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    run("pack", folder, tmp_path / "whole", *ARGUMENTS)
    expected = contents(tmp_path / "whole")
    # the process kills itself at its n-th write, rename or flush, which covers every different state of the disk
    suicide = (
        "import os, sys, signal, builtins\n"
        "left = int(sys.argv.pop(1))\n"
        "def counted(call):\n"
        "    def wrapped(*args, **kwargs):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return call(*args, **kwargs)\n"
        "    return wrapped\n"
        "os.replace, os.fsync = counted(os.replace), counted(os.fsync)\n"
        "from feedline.pack import shard_file\n"
        "shard_file.ShardFile._write = counted(shard_file.ShardFile._write)\n"
        "from feedline.cli import main\n"
        "sys.exit(main())\n"
    )
    killed, output = 0, tmp_path / "killed"
    for moment in (0, 1, 2, 4, 9, 20, 33):  # each time from the state of the previous one
        died = subprocess.run([sys.executable, "-c", suicide, str(moment), "pack", folder, output, *ARGUMENTS])
        killed += died.returncode == -signal.SIGKILL
        whole = [path for path in output.glob("*.tar") if not feedline.inspect(path).findings]
        assert len(whole) == len(list(output.glob("*.tar"))), "a shard under its own name is whole at any moment"
    assert killed == 7
    assert json.loads((output / "feedline-pack.json").read_text())["shards"], "or no shard was ever found again"
    assert "already existed" in run("pack", folder, output, *ARGUMENTS).stdout
    assert contents(output) == expected
    assert not list(output.glob("*.unfinished"))
    assert "7 shards, of which 7" in run("pack", folder, output, *ARGUMENTS).stdout
    assert contents(output) == expected


def test_killed_from_outside_it_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "in", per_class=30)
    run("pack", folder, tmp_path / "whole", *ARGUMENTS)
    output = tmp_path / "killed"
    for _ in range(3):
        process = subprocess.Popen([*COMMAND, "pack", folder, output, *ARGUMENTS], stdout=subprocess.DEVNULL)
        before = len(list(output.glob("*.tar"))) if output.exists() else 0
        while process.poll() is None and (not output.exists() or len(list(output.glob("*.tar"))) < before + 4):
            time.sleep(0.001)
        process.kill()
        process.wait()
    run("pack", folder, output, *ARGUMENTS)
    assert contents(output) == contents(tmp_path / "whole")


def test_interrupted_it_leaves_nothing_unfinished(tmp_path: Path) -> None:
    folder = made_data.make_folder(tmp_path / "in", per_class=30)
    output = tmp_path / "out"
    done: list[int] = []

    def interrupt(position: int, total: int) -> None:
        done.append(position)
        if position == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        packing.pack(folder, output, samples_per_shard=20, progress=interrupt)
    names = sorted(path.name for path in output.iterdir() if path.name != ".feedline")
    assert names == ["000000.tar", "000001.tar", "feedline-pack.json"]
    report = packing.pack(folder, output, samples_per_shard=20, progress=lambda position, total: done.append(position))
    assert (report.samples, report.shards_found) == (90, 2)
    assert done == [*range(51), *range(40, 91)], "every step is told, from where it resumes"


def test_other_arguments_are_refused_with_what_differs(folder: Path, tmp_path: Path) -> None:
    packing.pack(folder, tmp_path / "out", samples_per_shard=5, shuffle=True)
    before = contents(tmp_path / "out")
    with pytest.raises(feedline.ConfigError, match="samples_per_shard was 5 and is 6") as refused:
        packing.pack(folder, tmp_path / "out", samples_per_shard=6, shuffle=True, seed=2)
    assert "seed was 0 and is 2" in str(refused.value) and "shuffle was" not in str(refused.value)
    with pytest.raises(feedline.ConfigError, match="'restart_interval': 'auto'"):
        packing.pack(
            folder, tmp_path / "out", samples_per_shard=5, shuffle=True, transcoders=[packing.RestartMarkers()]
        )
    other = made_data.make_folder(tmp_path / "other", per_class=3)
    assert (
        "samples was 21"
        in run("pack", other, tmp_path / "out", "--samples-per-shard", "5", "--shuffle", status=2).stderr
    )
    assert contents(tmp_path / "out") == before


def test_what_is_there_is_verified(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"

    def refused(text: str) -> None:
        with pytest.raises(feedline.DataError, match=text):
            packing.pack(folder, output, samples_per_shard=5)

    packing.pack(folder, output, samples_per_shard=5)
    shard = output / "000001.tar"
    content = bytearray(shard.read_bytes())
    content[700] ^= 1
    shard.write_bytes(content)
    refused("000001.tar has changed since it was packed")
    assert shard.read_bytes() == content, "somebody may want it"
    shard.unlink()
    refused("000001.tar is missing")
    (output / "feedline-pack.json").write_text("{")
    refused("feedline-pack.json is damaged")


def test_a_folder_that_holds_something_else_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(feedline.ConfigError, match="not empty"):
        packing.pack(folder, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(feedline.ConfigError, match="is inside the source"):
        packing.pack(folder, folder / "apple" / "out")
    assert not (folder / "apple" / "out").exists()
    run("pack", tmp_path / "nothing", tmp_path / "out", status=3)
    assert not (tmp_path / "out").exists()


def test_damaged_images_are_an_error_or_listed(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(folder, source)
    cut = source / "birch" / "002.jpg"
    cut.write_bytes(cut.read_bytes()[:-700])
    empty = source / "crow" / "006.jpg"
    empty.write_bytes(b"")
    arguments = (source, tmp_path / "out", "--samples-per-shard", "4", "--check")
    failed = run("pack", *arguments, status=3)
    assert "birch/002" in failed.stderr and "truncated JPEG" in failed.stderr
    assert len(list((tmp_path / "out").glob("*.tar"))) == 2, "what was finished before stays"
    listed = run("pack", *arguments, "--on-error", "skip", status=1)
    assert "birch/002" in listed.stdout and "crow/006" in listed.stdout
    again = json.loads(run("pack", *arguments, "--on-error", "skip", "--json", status=1).stdout)
    assert [skipped["key"] for skipped in again["skipped"]] == ["birch/002.jpg", "crow/006.jpg"]
    assert again["samples"] == 19
    with pytest.raises(feedline.DataError, match="birch/002"):  # markers also require all pixels
        packing.pack(source, tmp_path / "marked", transcoders=[packing.RestartMarkers(4)])


def test_samples_with_one_key_are_refused(tmp_path: Path) -> None:
    image = made_data.encoded(made_data.photo(1, 40, 30))
    for name in ("0.tar", "1.tar"):
        made_data.write_tar(tmp_path / name, [("a.jpg", image), ("a.cls", b"1")])
    with pytest.raises(feedline.DataError, match="two samples with the key 'a'"):
        packing.pack(tmp_path / "{0..1}.tar", tmp_path / "out")
    assert packing.pack(tmp_path / "{0..1}.tar", tmp_path / "apart", samples_per_shard=1).samples == 2


def test_a_disk_that_is_full_is_reported_and_survived(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"

    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    failed = run("pack", folder, output, status=3, preexec_fn=small_files_only)
    assert "cannot write into" in failed.stderr and "resumes" in failed.stderr
    assert [path.name for path in output.iterdir()] == ["feedline-pack.json"]
    assert "21 samples in 1 shard, " in run("pack", folder, output).stdout


def test_two_at_a_time_do_not_mix(folder: Path, tmp_path: Path) -> None:
    import fcntl

    output = tmp_path / "out"
    output.mkdir()
    handle = os.open(output, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(feedline.ConfigError, match="another process is packing"):
        packing.pack(folder, output)
    os.close(handle)
    assert packing.pack(folder, output).samples == 21


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"shard_bytes": 0}, "shard_bytes"),
        ({"shard_bytes": "many"}, "shard_bytes"),
        ({"shard_bytes": "1MB", "samples_per_shard": 5}, "not both"),
        ({"samples_per_shard": 0}, "samples_per_shard"),
        ({"on_error": "ignore"}, "on_error"),
        ({"format": "tar"}, "folder"),
    ],
)
def test_wrong_arguments_leave_no_folder(folder: Path, tmp_path: Path, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(feedline.Error, match=said):
        packing.pack(folder, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("interval", ["0", "65536", "few"])
def test_wrong_intervals_are_usage_errors(folder: Path, tmp_path: Path, interval: str) -> None:
    assert "65535" in run("pack", folder, tmp_path / "out", "--restart-interval", interval, status=2).stderr


@pytest.mark.parametrize("last", [1, 2])
def test_a_range_leaves_the_unfinished_files_of_others(folder: Path, tmp_path: Path, last: int) -> None:
    def stop(done: int, _: int) -> None:
        if last == 2 and done == 6:
            raise KeyboardInterrupt

    out, options = tmp_path / "out", {"shard_range": (0, last), "samples_per_shard": 4}
    with contextlib.suppress(KeyboardInterrupt):
        packing.pack(folder, out, **options, progress=stop)
    other = out / f"{last:06}.tar.unfinished"  # another process packs it
    other.write_bytes(b"begun")
    assert packing.pack(folder, out, **options).samples == 4 * last
    assert other.read_bytes() == b"begun"
