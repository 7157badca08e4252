# SPDX-License-Identifier: Apache-2.0
"""Volumes packed as Zarr, the warning about chunks, and nnU-Net's augmentation."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import made_volumes as made
import numpy as np
import pytest

import feedline
from feedline import packing

SHAPE = (30, 41, 52)


@pytest.fixture
def pairs(tmp_path: Path) -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    rows = []
    for i in range(2):
        image = rng.integers(-100, 100, (SHAPE[0] + i, *SHAPE[1:])).astype("i2")
        mask = np.zeros(image.shape, "u1")
        mask[5:9, 5:9, 5:9] = i + 1
        paths = tmp_path / f"in/image{i}.nii", tmp_path / f"in/mask{i}.nii"
        for path, values in zip(paths, (image, mask), strict=True):
            path.write_bytes(made.nifti(values, sform=np.diag([2, 3, 4, 1])))
        rows.append((str(paths[0]), str(paths[1])))
    return rows


def check(output: Path, pairs: Any) -> None:
    packed = feedline.open(output, fields=("image", "mask"))
    stored = feedline.open(pairs)
    assert len(packed) == len(stored) == 2
    for i in range(2):
        assert np.array_equal(packed[i].image, stored[i].image)
        assert np.array_equal(packed[i].mask, stored[i].mask)


def test_volumes_are_written_in_chunks_for_the_patch(tmp_path: Path, pairs: Any) -> None:
    report = packing.pack_volumes(feedline.open(pairs), tmp_path / "out", patch=(16, 16, 32))
    assert (report.volumes, report.skipped, report.chunk) == (2, 0, (8, 8, 16))
    check(tmp_path / "out", pairs)
    metadata = json.loads((tmp_path / "out/00000.zarr/image/zarr.json").read_text())
    assert metadata["codecs"][0]["configuration"]["chunk_shape"] == [8, 8, 16]
    assert metadata["chunk_grid"]["configuration"]["chunk_shape"] == [32, 48, 64]
    assert metadata["attributes"]["affine"] == np.diag([2.0, 3, 4, 1]).tolist()
    mask = tmp_path / "out/00000.zarr/mask/c/0/0/0"
    assert mask.stat().st_size < 16 * 4 * 6 * 4 + 4 + 1000, "chunks of zeros are not stored"
    again = packing.pack_volumes(pairs, tmp_path / "out", patch=(16, 16, 32))
    assert (again.skipped, again.bytes) == (2, 0)


def test_zarr_python_reads_it(tmp_path: Path, pairs: Any) -> None:
    zarr = pytest.importorskip("zarr")
    packing.pack_volumes(pairs, tmp_path / "out", patch=(32, 32, 32))
    group = zarr.open_group(str(tmp_path / "out/00001.zarr"), mode="r")
    stored = feedline.open(pairs)[1]
    assert np.array_equal(group["image"][:], stored.image)
    assert np.array_equal(group["mask"][:], stored.mask)


def test_without_zstandard_it_is_gzip(tmp_path: Path, pairs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    packing.pack_volumes(pairs, tmp_path / "out", patch=(32, 32, 32))
    metadata = json.loads((tmp_path / "out/00000.zarr/image/zarr.json").read_text())
    assert metadata["codecs"][0]["configuration"]["codecs"][1]["name"] == "gzip"
    check(tmp_path / "out", pairs)


def test_the_command_packs_pairs(tmp_path: Path, pairs: Any) -> None:
    pytest.importorskip("click", reason="the command line is not installed")

    def run(*arguments: str) -> Any:
        return subprocess.run([sys.executable, "-m", "feedline", *arguments], capture_output=True, text=True)

    source = f"{tmp_path}/in/image*.nii,{tmp_path}/in/mask*.nii"
    call = ["pack", source, str(tmp_path / "out"), "--fields", "image,mask"]
    done = run(*call, "--to", "zarr", "--patch", "32,32,32", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["chunk"] == [16, 16, 16]
    check(tmp_path / "out", pairs)
    for wrong in (["--to", "zarr"], ["--to", "zarr", "--patch", "8,x"], ["--patch", "8,8,8"]):
        assert run(*call, *wrong).returncode == 2


def test_other_sources_are_refused(tmp_path: Path, pairs: Any) -> None:
    with pytest.raises(feedline.ConfigError, match="Zarr needs a source with volumes"):
        packing.pack_volumes(feedline.arrays(x=np.zeros((3, 4))), tmp_path / "out", patch=(8, 8, 8))
    with pytest.raises(feedline.ConfigError, match="without operations"):
        packing.pack_volumes(feedline.open(pairs).center_crop((8, 8, 8)), tmp_path / "out", patch=(8, 8, 8))
    with pytest.raises(feedline.ConfigError, match="local folder"):
        packing.pack_volumes(pairs, "s3://bucket/out", patch=(8, 8, 8))


def test_pack_says_what_to_do_with_volumes_and_datasets(tmp_path: Path, pairs: Any) -> None:
    volumes = feedline.open(pairs)
    for source in (volumes, volumes.random_crop((8, 8, 8)), pairs, pairs[0][0]):
        for call in (lambda s: packing.pack(s, tmp_path / "out"), packing.shard_count):
            with pytest.raises(feedline.ConfigError, match=r"has volumes.*pack_volumes\(source, output, patch=...\)"):
                call(source)
    with pytest.raises(feedline.ConfigError, match="must be a path or URL, not Dataset; for a Dataset, pass the path"):
        packing.pack(feedline.arrays(x=np.zeros((3, 4))), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_chunks_that_fit_badly_are_reported(tmp_path: Path) -> None:
    values = np.zeros((64, 64, 64), "u1")
    large = made.zarr3(tmp_path / "a.zarr", values, (64, 64, 64), [made.LITTLE], bytes)
    small = made.zarr3(tmp_path / "b.zarr", values, (16, 16, 16), [made.LITTLE], bytes)
    with pytest.warns(UserWarning, match=r"fit badly.*--to zarr") as warned:
        text = feedline.open(large).random_crop((32, 32, 32)).explain()
    assert warned[0].filename == __file__
    assert "26.2 voxels are decoded for each voxel" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "3.2 voxels" in feedline.open(small).random_crop((32, 32, 32)).explain()


def test_nnunets_augmentation(pairs: Any) -> None:
    train, options = feedline.presets.nnunet_train(pairs, size=(24, 24, 24))
    assert [operation.partition("(")[0] for operation in train.operations] == [
        "random_crop",
        "random_affine",
        "random_zoom",
        "random_gaussian_noise",
        "random_gaussian_blur",
        "random_brightness",
        "random_contrast",
        "random_low_resolution",
        "random_gamma",
        "random_gamma",
        "random_flip",
    ]
    (batch,) = list(train.loader(**options, seed=1))
    assert tuple(batch.image.shape) == tuple(batch.mask.shape) == (2, 24, 24, 24)
    assert np.isfinite(np.asarray(batch.image)).all()


def test_factors_are_around_one_as_in_batchgenerators(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 4, 4), "f4"))
    cube = feedline.open(tmp_path / "a.npy", volumes=True).random_crop((4, 4, 4), patches=2000)
    bright = cube.random_brightness((0.5, 3.0), p=1)
    factors = np.concatenate([np.asarray(batch.image)[:, 0, 0, 0] for batch in bright.loader(batch_size=100)])
    assert 0.45 < (factors < 1).mean() < 0.55
    assert abs(factors[factors < 1].mean() - 0.75) < 0.02
    assert abs(factors[factors > 1].mean() - 2.0) < 0.06
