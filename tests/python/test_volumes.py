# SPDX-License-Identifier: Apache-2.0
"""NIfTI and .npy volumes, patches of them, and operations on patches."""

from __future__ import annotations

import gzip
import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_volumes import NIFTI_TYPES, nifti, touched

import feedline

SHAPE = (20, 24, 28)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def array() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).permutation(np.prod(SHAPE)).reshape(SHAPE).astype("i2")


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def saved(path: Path, array: np.ndarray[Any, Any]) -> str:
    np.save(path, array)
    return str(path)


def opened(path: str | list[Any], **options: Any) -> Any:
    return feedline.open(path, volumes=True, **options)


def position_of(patch: np.ndarray[Any, Any], array: np.ndarray[Any, Any]) -> tuple[int, ...]:
    """The position of a patch, by its first voxel; all voxels of the array differ."""
    (at,) = np.argwhere(array == patch.flat[0])
    box = tuple(slice(a, a + n) for a, n in zip(at, patch.shape, strict=True))
    assert np.array_equal(array[box], patch)
    return tuple(int(a) for a in at)


# ---- NIfTI ----


@pytest.mark.parametrize(("version", "order"), [(1, "<"), (1, ">"), (2, "<"), (2, ">")])
@pytest.mark.parametrize("code", NIFTI_TYPES)
def test_nifti_voxels_are_nibabels(tmp_path: Path, code: str, version: int, order: str) -> None:
    values = np.random.default_rng(1).integers(0, 100, (3, 4, 5)).astype(code)
    path = written(tmp_path / "a.nii", nifti(values, version=version, order=order, sform=np.eye(4)))
    sample = opened(path)[0]
    assert sample.image.dtype == values.dtype
    assert np.array_equal(sample.image, values)
    assert np.array_equal(sample.affine, np.eye(4))


def test_nifti_scaling_gives_float32(tmp_path: Path) -> None:
    values = np.arange(60, dtype="i2").reshape(3, 4, 5)
    path = written(tmp_path / "a.nii", nifti(values, slope=0.3, inter=-5.0, order=">"))
    image = opened(path)[0].image
    slope, inter = np.float64(np.float32(0.3)), -5.0
    assert image.dtype == np.float32
    assert np.array_equal(image, (values * slope + inter).astype("f4"))
    for slope, inter in ((0.0, 7.0), (float("nan"), 1.0), (1.0, 0.0)):
        path = written(tmp_path / "b.nii", nifti(values, slope=slope, inter=inter))
        assert opened(path)[0].image.dtype == np.int16


def test_nifti_affine_of_sform_qform_or_spacing(tmp_path: Path) -> None:
    values = np.zeros((3, 4, 5), "u1")
    rows = np.array([[2, 0, 0, -7], [0, 3, 0.5, 1], [0, 0, 4, 9], [0, 0, 0, 1.0]])
    pixdim = (-1.0, 2.0, 3.0, 4.0)
    half = 0.5**0.5
    turned = (half, 0.0, 0.0, 1.0, 2.0, 3.0)  # a quarter turn around x
    by_qform = [[2, 0, 0, 1], [0, 0, 4, 2], [0, 3, 0, 3], [0, 0, 0, 1]]
    by_spacing = [[-2, 0, 0, 2], [0, 3, 0, -4.5], [0, 0, 4, -8], [0, 0, 0, 1]]
    for options, expected in (
        ({"sform": rows, "quaternion": turned}, rows),
        ({"quaternion": turned}, by_qform),
        ({}, by_spacing),
    ):
        path = written(tmp_path / "a.nii", nifti(values, pixdim=pixdim, **options))
        assert np.allclose(opened(path)[0].affine, expected, atol=1e-6)


def test_nifti_matches_nibabel(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    rng = np.random.default_rng(2)
    for kind, pixdim in ((nibabel.Nifti1Image, 1.5), (nibabel.Nifti2Image, 0.7)):
        affine = np.diag([pixdim, 2, 3, 1]) @ np.array([[0, 1, 0, 3], [-1, 0, 0, 4], [0, 0, 1, -5], [0, 0, 0, 1.0]])
        image = kind(rng.normal(size=(5, 6, 7)), affine)
        image.set_data_dtype(np.int16)  # nibabel chooses the slope
        for name in ("a.nii", "a.nii.gz"):
            image.to_filename(tmp_path / name)
            known = nibabel.load(tmp_path / name)
            sample = opened(str(tmp_path / name))[0]
            assert np.array_equal(sample.image, known.get_fdata().astype("f4"))
            assert np.allclose(sample.affine, known.affine)


def test_compressed_nifti_is_decompressed_once(tmp_path: Path, array: Any) -> None:
    path = written(tmp_path / "a.nii.gz", gzip.compress(nifti(array)))
    patches = feedline.open(path).random_crop((8, 8, 8), patches=5)
    for i in range(5):
        position_of(patches[i].image, array)
    copies = list((tmp_path / "cache").rglob("*.nii"))
    assert len(copies) == 1
    before = copies[0].stat().st_mtime_ns
    feedline.open(path).center_crop((8, 8, 8))[0]
    assert copies[0].stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a file of 0 bytes is not a NIfTI file"),
        (bytes(400), "neither 348 nor 540"),
        (nifti(np.zeros((2, 2, 2), "u1"))[:300], "header is truncated"),
        (nifti(np.zeros((2, 2, 2), "u1"))[:-1], "truncated: 7 of 8 bytes"),
        (nifti(np.zeros((2, 2, 2), "u1"), type=(70, "h", 128)), "NIfTI type 128"),
        (nifti(np.zeros((2, 2, 2), "u1"), dims=(40, "h", 9)), "9 dimensions"),
        (nifti(np.zeros((2, 2, 2), "u1"), extent=(44, "h", -3)), "extent 1 is -3"),
        (nifti(np.zeros((2, 2, 2), "u1"), magic=(344, "4s", b"ni1\0")), "separate .img file"),
        (nifti(np.zeros((2, 2, 2), "u1"), magic=(344, "4s", b"abc\0")), "the magic is wrong"),
        (nifti(np.zeros((2, 2, 2), "u1"), offset=(108, "f", 100.0)), "cannot start at byte 100"),
        (nifti(np.zeros((2, 2, 2), "u1"), sform=np.diag([1, 0, 1, 1])), "affine is broken"),
        (nifti(np.zeros((2, 2, 2), "u1"), sform=np.full((4, 4), np.nan)), "affine is broken"),
        (nifti(np.zeros((2, 2, 2), "u1"), quaternion=(1, 1, 1, 0, 0, 0)), "affine is broken"),
        (nifti(np.zeros((2, 2, 2), "u1"), slope=2.0, inter=float("inf")), "intercept is not finite"),
        (nifti(np.zeros((2, 2, 2), "u1"), version=2, extent=(24, "q", 2**62)), "overflow"),
    ],
)
def test_damaged_nifti_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = written(tmp_path / "bad.nii", data)
    with pytest.raises(feedline.DataError, match=message) as raised:
        opened(path)
    assert "bad.nii" in str(raised.value)


def test_broken_gzip_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(nifti(np.random.default_rng(0).integers(0, 99, (9, 9, 9)).astype("i2")))
    for data in (whole[:-30], whole[:200] + b"\0\xff\0\xff" + whole[204:]):
        path = written(tmp_path / "bad.nii.gz", data)
        with pytest.raises(feedline.DataError, match="gzip"):
            opened(path)


def test_later_damage_is_an_error_of_its_sample(tmp_path: Path, array: Any) -> None:
    paths = [written(tmp_path / f"{i}.nii", nifti(array) if i != 1 else nifti(array)[:-9]) for i in range(3)]
    patches = feedline.open(paths).center_crop((8, 8, 8))
    assert len(list(patches.loader(batch_size=1, on_error="skip"))) == 2
    with pytest.raises(feedline.DataError, match=r"field 'image'.*truncated") as raised:
        patches[1]
    assert "1.nii" in str(raised.value)


# ---- sources ----


def test_npy_is_one_volume_only_on_request(tmp_path: Path, array: Any) -> None:
    path = saved(tmp_path / "a.npy", array)
    assert len(feedline.open(path)) == SHAPE[0]
    volume = opened(path)
    assert len(volume) == 1
    assert np.array_equal(volume[0].image, array)
    with pytest.raises(feedline.ConfigError, match="volumes=True is for"):
        opened(str(tmp_path))


@pytest.mark.parametrize("form", ["f2", ">i4", "fortran"])
def test_npy_of_other_forms(tmp_path: Path, array: Any, form: str) -> None:
    stored = np.asfortranarray(array) if form == "fortran" else array.astype(form)
    path = saved(tmp_path / "a.npy", stored)
    if form == "f2":
        with pytest.raises(feedline.ConfigError, match="float16"):
            opened(path).center_crop((8, 8, 8)).loader(batch_size=1)
        return
    assert np.array_equal(opened(path).center_crop((8, 8, 8))[0].image, array[6:14, 8:16, 10:18])


def test_folder_pattern_and_pairs(tmp_path: Path, array: Any) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for i in range(3):
        written(tmp_path / f"images/{i}.nii", nifti(array + i))
        written(tmp_path / f"labels/{i}.nii", nifti((array % 3).astype("u1")))
    folder = feedline.open(tmp_path / "images")
    pattern = feedline.open(str(tmp_path / "images/*.nii"))
    pairs = feedline.open([(str(tmp_path / "images/*.nii"), str(tmp_path / "labels/*.nii"))])
    assert [len(one) for one in (folder, pattern, pairs)] == [3, 3, 3]
    for i in range(3):
        assert np.array_equal(folder[i].image, array + i)
        assert np.array_equal(pattern[i].image, array + i)
        assert np.array_equal(pairs[i].mask, array % 3)
    assert list(pairs.schema) == ["image", "mask", "affine"]
    named = feedline.open([(tmp_path / "images/0.nii", tmp_path / "labels/0.nii")], fields=("ct", "organs:mask"))
    assert list(named.schema) == ["ct", "organs", "affine"]


def test_wrong_sources_are_refused(tmp_path: Path, array: Any) -> None:
    path = saved(tmp_path / "a.npy", array)
    for source, options, message in (
        (path, {"fields": ("image", "mask")}, "has one volume, but there are 2 fields"),
        ([(path, path)], {"fields": ("image",)}, "2 paths, but there are 1 fields"),
        ([(path, path, path)], {}, "name their fields"),
        ([(path, path)], {"fields": ("x", "x")}, "used twice"),
        (path, {"fields": ("x:boxes",)}, "kind 'boxes'"),
        (path, {"fields": ("x=inner",)}, "has one array, without a name; omit '=inner'"),
    ):
        with pytest.raises(feedline.ConfigError, match=message):
            opened(source, **options)
    missing = str(tmp_path / "none.nii")
    with pytest.raises(feedline.StorageError, match=r"none\.nii"):
        feedline.open(missing)


@pytest.mark.parametrize("name", ["a.npy", "a.nii", "a.nii.gz"])
def test_a_file_that_changes_while_it_is_open_is_noticed(tmp_path: Path, array: Any, name: str) -> None:
    def write(values: Any) -> str:
        if name == "a.npy":
            return saved(tmp_path / name, values)
        data = nifti(values, slope=2.0, inter=1.0)
        return written(tmp_path / name, gzip.compress(data, 0) if name.endswith("gz") else data)

    path = write(array)
    patches = opened(path).random_crop((8, 8, 8), patches=3)
    turned = opened(path).random_crop((8, 8, 8), patches=3).random_affine(20)
    patches[0], turned[0]
    size = Path(path).stat().st_size
    write(np.ascontiguousarray(array.T))  # the same size, but other extents
    touched(path)
    assert Path(path).stat().st_size == size
    for stale in (patches, turned):
        with pytest.raises(feedline.StorageError, match=r"has changed between index and read.*open the dataset.*a\.n"):
            stale[1]
        with pytest.raises(feedline.StorageError, match="has changed"):
            list(stale.loader(batch_size=1))
    assert opened(path)[0].image.shape == array.T.shape


# ---- patches ----


def test_random_patches_are_parts_of_the_volume(tmp_path: Path, array: Any) -> None:
    paths = [saved(tmp_path / f"{i}.npy", array) for i in range(2)]
    patches = opened(paths).random_crop((5, 6, 7), patches=50)
    assert len(patches) == 100
    seen = {position_of(patches[i].image, array) for i in range(100)}
    assert len(seen) > 90
    limits = [extent - size for extent, size in zip(SHAPE, (5, 6, 7), strict=True)]
    for axis, limit in enumerate(limits):
        along = [at[axis] for at in seen]
        assert 0 <= min(along) < limit / 4 and limit * 3 / 4 < max(along) <= limit


def test_draws_depend_on_seed_epoch_and_sample_only(tmp_path: Path, array: Any) -> None:
    patches = opened(saved(tmp_path / "a.npy", array)).random_crop((4, 4, 4), patches=6)
    patches = patches.random_flip().random_affine(20, scale=(0.8, 1.2)).random_gaussian_noise(p=1)

    def epoch(workers: int, number: int) -> Any:
        loader = patches.loader(batch_size=2, seed=3, num_workers=workers)
        for _ in range(number):
            list(loader)
        return np.concatenate([np.asarray(batch.image) for batch in loader])

    assert np.array_equal(epoch(1, 0), epoch(4, 0))
    assert not np.array_equal(epoch(1, 0), epoch(1, 1))
    assert np.array_equal(pickle.loads(pickle.dumps(patches))[1].image, patches[1].image)


def test_all_volumes_of_a_sample_are_cropped_alike(tmp_path: Path, array: Any) -> None:
    image, mask = saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", array.astype("i4"))
    pairs = opened([(image, mask)]).random_crop((6, 6, 6), patches=8).random_flip().random_rotate90((1, 2), p=0.9)
    for batch in pairs.loader(batch_size=4):
        assert np.array_equal(np.asarray(batch.image), np.asarray(batch.mask))


def test_volumes_of_other_sizes_are_refused(tmp_path: Path, array: Any) -> None:
    pair = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", array[:-1]))]
    with pytest.raises(feedline.DataError, match=r"\(19, 24, 28\) voxels.*\(20, 24, 28\)"):
        opened(pair).random_crop((4, 4, 4))[0]


def test_whole_volumes_of_a_sample_may_differ(tmp_path: Path, array: Any) -> None:
    pair = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "b.npy", np.stack([array[1:], array[:-1]])))]
    sample = opened(pair, fields=("image", "extra"))[0]
    assert np.array_equal(sample.image, array)
    assert np.array_equal(sample.extra, np.stack([array[1:], array[:-1]]))


def test_patches_of_one_volume_are_not_split(tmp_path: Path, array: Any) -> None:
    volumes = opened([saved(tmp_path / f"{i}.npy", array) for i in range(4)])
    train, valid = volumes.split(0.5, 0.5)
    assert len(train.random_crop((4, 4, 4), patches=3)) == len(valid.random_crop((4, 4, 4), patches=3)) == 6
    assert [len(part) for part in volumes.random_crop((4, 4, 4)).split(0.5, 0.5)] == [2, 2]  # one patch of each
    assert [len(part) for part in volumes.center_crop((4, 4, 4)).split(0.5, 0.5)] == [2, 2]
    patches = volumes.random_crop((4, 4, 4), patches=3)
    for cropped in (patches, volumes.grid_patches((20, 12, 28))):
        with pytest.raises(feedline.ConfigError, match=r"split: patches of one volume.*split the volumes first"):
            cropped.split(0.5, 0.5)
        with pytest.raises(feedline.ConfigError, match="split the volumes first"):
            cropped.split(k_fold=2, fold=0)
    parts = patches.split(k_fold=2, fold=0, groups=[i // 3 for i in range(12)])
    assert [len(part) for part in parts] == [6, 6]


def test_volumes_are_not_shown(tmp_path: Path, array: Any) -> None:
    with pytest.raises(feedline.ConfigError, match="have no image"):
        opened(saved(tmp_path / "a.npy", array)).show()


def test_small_volumes_are_refused_or_padded(tmp_path: Path, array: Any) -> None:
    path = saved(tmp_path / "a.npy", array[:5])
    advice = r"fewer than a patch along axis 0, which has 8; use smaller patches, or pad_if_needed=True"
    with pytest.raises(feedline.DataError, match=advice):
        opened(path).random_crop((8, 8, 8))[0]
    for patches in (opened(path).random_crop((8, 8, 8), pad_if_needed=True), opened(path).center_crop((8, 8, 8))):
        image = patches[0].image
        position_of(image[2:7], array)
        assert not image[:2].any() and not image[7:].any()
    with pytest.raises(feedline.DataError, match="5 voxels along an axis on which a patch has 8"):
        opened(path).grid_patches((8, 8, 8))


def test_foreground_is_centred_as_often_as_wanted(tmp_path: Path, array: Any) -> None:
    mask = np.zeros(SHAPE, "u1")
    mask[9:11, 12, 14] = 1  # rare
    mask[8:12, 8:12, 8:12] = 2
    mask[16, 20, 22] = 3
    paths = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", mask))]

    def centres(**options: Any) -> Any:
        patches = opened(paths).random_crop((8, 8, 8), patches=400, **options)
        return np.array([patches[i].mask[4, 4, 4] for i in range(400)])

    found = centres(foreground=("mask", 0.5))
    assert 150 < (found > 0).sum() < 250
    for label in (1, 2, 3):  # drawn by label, not by voxel
        assert 40 < (found == label).sum() < 110
    only = centres(foreground=("mask", 1.0, [3]))
    assert (only == 3).all()
    assert (centres() > 0).sum() < 40


def test_foreground_near_a_border_stays_inside(tmp_path: Path) -> None:
    mask = np.zeros(SHAPE, "u1")
    mask[0, 23, 5] = 1
    paths = [(saved(tmp_path / "a.npy", mask), saved(tmp_path / "m.npy", mask))]
    patches = opened(paths).random_crop((8, 8, 8), patches=5, foreground=("mask", 1.0))
    assert all(patches[i].mask[0, 7, 4] == 1 for i in range(5))


def test_foreground_is_found_once(tmp_path: Path, array: Any) -> None:
    mask = np.zeros(SHAPE, "u1")
    mask[5, 6, 7] = 1
    image, labels = saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", mask)

    def patch() -> Any:
        dataset = opened([(image, labels)], index=tmp_path / "index")
        (batch,) = dataset.random_crop((2, 2, 2), foreground=("mask", 1.0)).loader(batch_size=1)
        return np.asarray(batch.image)[0]

    first = patch()
    assert list((tmp_path / "index").rglob("*foreground*"))
    # an unchanged file is not searched again: the stored voxel counts
    stat = Path(labels).stat()
    saved(tmp_path / "m.npy", np.zeros(SHAPE, "u1"))
    os.utime(labels, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert np.array_equal(patch(), first)


@pytest.mark.parametrize(
    ("dtype", "value", "shown"),
    [
        ("f4", np.nan, "nan"),
        ("f8", -np.nan, "-?nan"),
        ("f4", np.inf, "inf"),
        ("f8", -np.inf, "-inf"),
        ("f4", 2.0**63, "9223372036854775808"),
        ("u8", 2**63, "9223372036854775808"),
    ],
)
def test_labels_that_are_not_integers_are_refused(
    tmp_path: Path, array: Any, dtype: str, value: Any, shown: str
) -> None:
    mask = np.zeros(SHAPE, dtype)
    mask[2, 3, 4], mask[5, 6, 7] = 1, value
    paths = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", mask))]
    message = rf"foreground of 'mask': the label at voxel \(5, 6, 7\) is {shown}.*shard .*m\.npy"
    for labels in ([], [[1]]):
        patches = opened(paths).random_crop((4, 4, 4), patches=2, foreground=("mask", 1.0, *labels))
        with pytest.raises(feedline.DataError, match=message):
            patches[0]


def test_fractions_of_labels_are_rounded_towards_zero(tmp_path: Path, array: Any) -> None:
    mask = np.full(SHAPE, 0.9, "f4")
    mask[5, 6, 7] = 1.9
    paths = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", mask))]
    patches = opened(paths).random_crop((1, 1, 1), patches=5, foreground=("mask", 1.0, [1]))
    assert {patches[i].mask.item() for i in range(5)} == {np.float32(1.9)}


def test_volumes_without_foreground_are_cropped_at_random(tmp_path: Path, array: Any) -> None:
    paths = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", np.zeros(SHAPE, "u1")))]
    patches = opened(paths).random_crop((4, 4, 4), patches=20, foreground=("mask", 1.0))
    assert len({position_of(patches[i].image, array) for i in range(20)}) > 15


@pytest.mark.parametrize(("overlap", "pad"), [(0, False), (3, False), ((1, 2, 0), True), (0, True)])
def test_grids_cover_the_volume(tmp_path: Path, array: Any, overlap: Any, pad: bool) -> None:
    size = (8, 6, 9)
    paths = [saved(tmp_path / "0.npy", array), saved(tmp_path / "1.npy", array[:9])]
    patches = opened(paths).grid_patches(size, overlap=overlap, pad=pad)
    ends = tuple(extent + n for extent, n in zip(SHAPE, size, strict=True))
    stitched = {SHAPE: np.zeros(ends, "i2"), (9, *SHAPE[1:]): np.zeros(ends, "i2")}
    count = 0
    for batch in patches.loader(batch_size=4, drop_last=False):
        for image, position, shape in zip(batch.image, batch.patch_position, batch.volume_shape, strict=True):
            box = tuple(slice(int(a), int(a) + n) for a, n in zip(position, size, strict=True))
            stitched[tuple(map(int, shape))][box] = np.asarray(image)
            count += 1
    assert count == len(patches)
    for shape, whole in stitched.items():
        assert np.array_equal(whole[tuple(map(slice, shape))], array[: shape[0]])
        if pad:
            whole[tuple(map(slice, shape))] = 0
            assert not whole.any()
    strides = [n - o for n, o in zip(size, (overlap,) * 3 if isinstance(overlap, int) else overlap, strict=True)]
    counts = [-(-max(e - n, 0) // s) + 1 for e, n, s in zip(SHAPE, size, strides, strict=True)]
    small = -(-max(9 - size[0], 0) // strides[0]) + 1
    assert len(patches) == (counts[0] + small) * counts[1] * counts[2]


def test_large_grids_need_little_memory(tmp_path: Path) -> None:
    path = saved(tmp_path / "0.npy", np.arange(10_000, dtype="u2").reshape(10, 20, 50))
    for i in range(1, 1000):
        os.link(path, tmp_path / f"{i}.npy")
    code = f"""
import resource, feedline
volumes = feedline.open([f"{tmp_path}/{{i}}.npy" for i in range(1000)], volumes=True)
volumes.center_crop((1, 1, 1))[999]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
patches = volumes.grid_patches((1, 1, 1))
loader = patches.loader(batch_size=2, shuffle=True)
assert len(str(loader.state_dict())) < 5000
last = patches[9_999_999]
assert last.image == 9999 and last.patch_position.tolist() == [9, 19, 49], last
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
    assert grown < 50_000  # KiB, for 10 million patches


def test_grids_notice_a_volume_of_another_shape(tmp_path: Path) -> None:
    path = saved(tmp_path / "0.npy", np.zeros((2, 3, 4), "u1"))
    count = 1025  # one more than stay open, so the first is opened again
    for i in range(1, count):
        os.link(path, tmp_path / f"{i}.npy")
    patches = opened([str(tmp_path / f"{i}.npy") for i in range(count)]).grid_patches((1, 1, 1))
    os.replace(saved(tmp_path / "other.npy", np.zeros((4, 3, 2), "u1")), path)
    with pytest.raises(feedline.StorageError, match=r"shape \(4, 3, 2\), but it had \(2, 3, 4\).*open the dataset"):
        patches[0]


def test_leading_axes_are_delivered_whole(tmp_path: Path) -> None:
    channels = np.arange(2 * 12 * 12 * 12, dtype="f4").reshape(2, 12, 12, 12)
    patches = opened(saved(tmp_path / "a.npy", channels)).random_crop((4, 4, 4), patches=6).random_flip((0, 2))
    for i in range(6):
        image = patches[i].image
        assert image.shape == (2, 4, 4, 4)
        assert np.array_equal(image[1], image[0] + 12**3)


def test_nifti_with_time_is_cropped_in_space(tmp_path: Path) -> None:
    series = np.random.default_rng(0).integers(0, 1000, (10, 11, 12, 3)).astype("i2")
    path = written(tmp_path / "a.nii", nifti(series))
    assert np.array_equal(opened(path).center_crop((4, 5, 6))[0].image, series[3:7, 3:8, 3:9])
    assert np.array_equal(opened(path).center_crop((4, 5, 6, 1))[0].image, series[3:7, 3:8, 3:9, 1:2])


def test_patches_are_shown_by_the_names_of_their_methods(tmp_path: Path, array: Any) -> None:
    volumes = opened(saved(tmp_path / "a.npy", array))
    drawn = volumes.random_crop((8, 8, 8), pad_if_needed=True).random_affine(10).random_zoom((0.5, 2)).normalize(1, 2)
    assert drawn.operations == [
        "random_crop((8, 8, 8), pad_if_needed=True)",
        "random_affine(degrees=(-10, 10), scale=(1, 1), p=1)",
        "random_zoom(scale=(0.5, 2), p=0.5)",
        "normalize(mean=1, std=2)",
    ]
    assert volumes.center_crop((8, 8, 8)).operations == ["center_crop((8, 8, 8))"]
    assert volumes.grid_patches((8, 8, 8), pad=True).operations == ["grid_patches((8, 8, 8), pad=True)"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.random_crop(8), "one number of voxels for each cropped axis"),
        (lambda d: d.random_crop((8, 8, 0)), "size"),
        (lambda d: d.random_crop((8, 8, 8), patches=0), "patches"),
        (lambda d: d.random_crop((8, 8, 8), padding=1), "padding is not supported for volumes"),
        (lambda d: d.random_crop((8, 8, 8), foreground="mask"), "foreground must be"),
        (lambda d: d.random_crop((8, 8, 8), foreground=("none", 0.5)).schema, "the volume 'none' does not exist"),
        (
            lambda d: d.random_crop((8, 8, 8), foreground=("image", 1.5)).schema,
            "random_crop: foreground: the share must be",
        ),
        (lambda d: d.grid_patches((8, 8, 8), overlap=8), "overlap must be"),
        (lambda d: d.center_crop((8, 8, 8)).random_crop((4, 4, 4)), "already are patches"),
        (lambda d: d.random_flip().schema, "crop first"),
        (lambda d: d.center_crop((8, 8, 8)).random_flip((3,)).schema, "axes must be 0, 1 or 2"),
        (lambda d: d.center_crop((8, 8)).random_flip((2,)).schema, "axis 2 does not exist"),
        (lambda d: d.center_crop((8, 8)).random_affine(10).schema, "random_affine: the patches must have three axes"),
        (lambda d: d.center_crop((8, 8, 8)).random_affine(10, scale=(0, 1)).schema, "random_affine: scale must be two"),
        (lambda d: d.center_crop((8, 8, 8)).random_zoom(p=2).schema, "random_zoom: p must be between 0 and 1"),
        (lambda d: d.center_crop((8, 8, 8)).normalize(0, 0).schema, "normalize: std must be above 0"),
        (lambda d: d.center_crop((8, 8, 4)).random_rotate90((1, 2)).schema, "8 and 4 voxels"),
        (lambda d: d.center_crop((8, 8, 8)).random_gamma((0, 1)).schema, "gamma"),
        (lambda d: d.center_crop((8, 8, 8)).resize(8).schema, "have no image"),
        (lambda d: d.cache().schema, "a volume, which a cache does not support"),
    ],
)
def test_wrong_calls_are_refused(tmp_path: Path, array: Any, call: Any, message: str) -> None:
    dataset = opened(saved(tmp_path / "a.npy", array))
    with pytest.raises(feedline.ConfigError, match=message):
        assert call(dataset) is None


def test_other_samples_have_no_patches() -> None:
    dataset = feedline.arrays(x=np.zeros((2, 8)))
    with pytest.raises(feedline.ConfigError, match="are for volumes"):
        dataset.random_crop(4, patches=2)
    with pytest.raises(feedline.ConfigError, match="no volumes"):
        dataset.grid_patches((4, 4, 4))


# ---- operations ----


def patch_of(tmp_path: Path, array: np.ndarray[Any, Any], name: str = "a.npy") -> Any:
    return opened(saved(tmp_path / name, array)).center_crop(array.shape[-3:])


def test_flips_and_rotations_are_numpys(tmp_path: Path) -> None:
    cube = np.arange(8**3, dtype="i2").reshape(8, 8, 8)
    flips = patch_of(tmp_path, cube).random_flip((0, 1, 2))
    turns = patch_of(tmp_path, cube).random_rotate90((0, 2), p=1)
    flipped, turned = set(), set()
    for epoch in range(60):
        image = flips.sample(0, epoch=epoch).image
        options = [
            axes
            for n in range(4)
            for axes in itertools.combinations(range(3), n)
            if np.array_equal(np.flip(cube, axes), image)
        ]
        flipped.update(options)
        assert len(options) == 1
        image = turns.sample(0, epoch=epoch).image
        quarter = [k for k in range(4) if np.array_equal(np.rot90(cube, k, (0, 2)), image)]
        turned.update(quarter)
        assert len(quarter) == 1
    assert len(flipped) == 8
    assert turned == {1, 2, 3}


def test_flips_after_rotations_keep_their_order(tmp_path: Path) -> None:
    cube = np.arange(6**3, dtype="i2").reshape(6, 6, 6)
    dataset = patch_of(tmp_path, cube).random_rotate90((0, 1), p=1).random_flip((0,), p=1)
    other = patch_of(tmp_path, cube, "b.npy").random_rotate90((0, 1), p=1)
    for epoch in range(10):
        turned = other.sample(0, epoch=epoch).image
        assert np.array_equal(dataset.sample(0, epoch=epoch).image, turned[::-1])


def test_affine_without_change_is_exact(tmp_path: Path) -> None:
    cube = np.random.default_rng(0).normal(size=(9, 10, 11)).astype("f4")
    image = patch_of(tmp_path, cube).random_affine(0)[0].image
    assert np.allclose(image, cube, atol=1e-5)


def test_zoom_is_scipys(tmp_path: Path) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    cube = np.random.default_rng(0).normal(size=(12, 13, 14)).astype("f4")
    labels = np.random.default_rng(1).integers(0, 5, cube.shape).astype("u1")
    pair = [(saved(tmp_path / "a.npy", cube), saved(tmp_path / "m.npy", labels))]
    for zoom in (0.63, 1.37):
        sample = opened(pair).center_crop(cube.shape).random_affine(0, scale=(zoom, zoom), fill=3.0)[0]
        centre = (np.array(cube.shape) - 1) / 2
        matrix = np.eye(3) / zoom
        offset = centre - matrix @ centre
        # grid-constant interpolates towards the fill value beyond the border, as documented
        expected = ndimage.affine_transform(cube, matrix, offset, order=1, mode="grid-constant", cval=3.0)
        assert np.allclose(sample.image, expected, atol=1e-4)
        nearest = ndimage.affine_transform(labels, matrix, offset, order=0, mode="grid-constant")
        assert (sample.mask != nearest).mean() < 0.001
        assert sample.mask.dtype == np.uint8


def test_rotation_reads_beyond_the_patch(tmp_path: Path) -> None:
    # a volume whose value is a linear function of the position: interpolation is exact
    x, y, z = np.meshgrid(*map(np.arange, (40, 40, 40)), indexing="ij")
    volume = (2.0 * x + 3.0 * y + 5.0 * z).astype("f4")
    dataset = opened(saved(tmp_path / "a.npy", volume)).center_crop((12, 12, 12)).random_affine(40)
    lengths = []
    for epoch in range(20):
        image = dataset.sample(0, epoch=epoch).image.astype("f8")
        assert abs(image.mean() - 10 * 19.5) < 0.01  # the centre does not move
        gradient = np.array([(np.diff(image, axis=axis)).mean() for axis in range(3)])
        for axis in range(3):
            assert np.allclose(np.diff(image, axis=axis), gradient[axis], atol=1e-3)  # nothing was filled
        lengths.append(np.linalg.norm(gradient))
        assert not np.allclose(gradient, [2, 3, 5], atol=0.05)
    assert np.allclose(lengths, 38**0.5, atol=1e-3)  # rotations keep lengths


def test_a_volume_of_one_slice_has_no_neighbours(tmp_path: Path) -> None:
    # the second channel is next to the first one in memory
    channels = np.stack([np.full((1, 65, 65), value, "f4") for value in (1, 1e30)])
    dataset = opened(saved(tmp_path / "a.npy", channels)).center_crop((1, 33, 33)).random_affine(40)
    for epoch in range(20):
        image = dataset.sample(0, epoch=epoch).image[0]
        assert image.min() >= 0
        assert image.max() <= 1.001


@pytest.mark.parametrize("channels", [None, 2])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_interpolation_does_not_depend_on_the_stored_form(tmp_path: Path, channels: int | None, dtype: str) -> None:
    shape = SHAPE if channels is None else (channels, *SHAPE)
    values = np.random.default_rng(3).integers(0, 100, shape).astype(dtype)
    forms = [values, np.asfortranarray(values), values.astype(f">{dtype}")]  # the first one is not copied
    seen = []
    for i, form in enumerate(forms):
        paths = (saved(tmp_path / f"{i}.npy", form), saved(tmp_path / f"m{i}.npy", form))
        patches = opened([paths]).random_crop((8, 9, 10), patches=6).random_affine(40, scale=(0.5, 1.5), fill=-1)
        seen.append([(patch.image, patch.mask) for patch in map(patches.__getitem__, range(6))])
    for other in seen[1:]:
        for (image, mask), (other_image, other_mask) in zip(seen[0], other, strict=True):
            assert np.array_equal(image, other_image)
            assert np.array_equal(mask, other_mask)
    assert any(mask.any() for _, mask in seen[0])


def test_rotations_are_scipys(tmp_path: Path) -> None:
    """Volumes of the coordinates, which are interpolated alike, give the position of each voxel."""
    ndimage = pytest.importorskip("scipy.ndimage")
    shape = (14, 21, 17)
    volume = np.random.default_rng(0).integers(0, 1000, shape).astype("i2")
    labels = np.arange(volume.size).reshape(shape).astype("i4")  # the nearest voxel
    along = np.meshgrid(*map(np.arange, shape), indexing="ij")
    paths = [saved(tmp_path / f"{i}.npy", values.astype("f4")) for i, values in enumerate(along)]
    row = (*paths, saved(tmp_path / "a.npy", volume), saved(tmp_path / "m.npy", labels))
    dataset = opened([row], fields=("x", "y", "z", "image", "mask")).center_crop(shape)
    dataset = dataset.random_affine(180, scale=(0.4, 2.5), fill=-1e7)
    compared = 0
    for epoch in range(60):
        sample = dataset.sample(0, epoch=epoch)
        at = np.stack([sample.x, sample.y, sample.z]).astype("f8")
        last = np.array(shape).reshape(3, 1, 1, 1) - 1
        inside = ((at > 0.01) & (at < last - 0.01)).all(axis=0)
        expected = ndimage.map_coordinates(volume.astype("f8"), at, order=1, mode="nearest")
        assert np.allclose(sample.image[inside], expected[inside], atol=0.5)
        middle = inside & (np.abs(at - np.floor(at) - 0.5) > 0.01).all(axis=0)  # not halfway between voxels
        nearest = np.ravel_multi_index(np.rint(at[:, middle]).astype(int), shape)
        assert np.array_equal(sample.mask[middle], nearest)
        outside = sample.image == -1e7
        assert not sample.mask[outside].any()
        compared += inside.sum()
    assert compared > 30_000


def test_values_change_images_only(tmp_path: Path) -> None:
    cube = np.random.default_rng(0).integers(0, 200, (10, 10, 10)).astype("i2")
    pair = [(saved(tmp_path / "a.npy", cube), saved(tmp_path / "m.npy", cube))]
    dataset = opened(pair).center_crop(cube.shape)
    changed = dataset.random_gamma(p=1).random_gaussian_noise(p=1).random_brightness(p=1).random_contrast(p=1)
    changed = changed.random_gaussian_blur(p=1).random_low_resolution(p=1).normalize(100.0, 20.0)
    sample = changed[0]
    assert sample.image.dtype == np.float32
    assert np.array_equal(sample.mask, cube)
    assert np.allclose(dataset.normalize(100.0, 20.0)[0].image, (cube - 100) / 20)


def one(tmp_path: Path, cube: np.ndarray[Any, Any], change: Any) -> np.ndarray[Any, Any]:
    return change(patch_of(tmp_path, cube)).sample(0).image.astype("f8")


def test_operations_on_values(tmp_path: Path) -> None:
    cube = np.random.default_rng(0).normal(3, 2, (16, 16, 16)).astype("f4")
    low, high, mean = cube.min(), cube.max(), cube.mean()
    gamma = one(tmp_path, cube, lambda d: d.random_gamma((1.4, 1.4), p=1))
    assert np.allclose(gamma, ((cube - low) / (high - low)) ** 1.4 * (high - low) + low, atol=1e-4)
    inverted = one(tmp_path, cube, lambda d: d.random_gamma((1.4, 1.4), p=1, invert=True))
    assert np.allclose(inverted, -(((high - cube) / (high - low)) ** 1.4 * (high - low) - high), atol=1e-4)
    kept = one(tmp_path, cube, lambda d: d.random_gamma((1.4, 1.4), p=1, retain_stats=True))
    assert np.allclose([kept.mean(), kept.std()], [mean, cube.std()], atol=1e-3)
    assert np.allclose(one(tmp_path, cube, lambda d: d.random_brightness((1.2, 1.2), p=1)), cube * 1.2, rtol=1e-5)
    contrast = one(tmp_path, cube, lambda d: d.random_contrast((1.2, 1.2), p=1))
    assert np.allclose(contrast, np.clip((cube - mean) * 1.2 + mean, low, high), atol=1e-4)
    noise = one(tmp_path, cube, lambda d: d.random_gaussian_noise((0.5, 0.5), p=1)) - cube
    assert abs(noise.std() - 0.5) < 0.02 and abs(noise.mean()) < 0.03
    for change in (
        lambda d: d.random_gamma(p=0),
        lambda d: d.random_gaussian_noise(p=0),
        lambda d: d.random_gaussian_blur(p=0),
        lambda d: d.random_low_resolution((1, 1), p=1),
    ):
        assert np.allclose(one(tmp_path, cube, change), cube, atol=1e-6)


def test_blur_is_scipys(tmp_path: Path) -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    cube = np.random.default_rng(0).normal(size=(6, 13, 14)).astype("f4")
    for sigma in (0.5, 1.7):
        blurred = one(tmp_path, cube, lambda d, s=sigma: d.random_gaussian_blur((s, s), p=1))
        assert np.allclose(blurred, ndimage.gaussian_filter(cube, sigma, truncate=4.0, mode="reflect"), atol=2e-3)


def test_low_resolution_keeps_smooth_volumes(tmp_path: Path) -> None:
    x = np.broadcast_to(np.arange(16, dtype="f4")[:, None, None], (16, 16, 16)).copy()
    low = one(tmp_path, x, lambda d: d.random_low_resolution((0.5, 0.5), p=1))
    assert np.abs(low - x).max() <= 1.01
    assert not np.array_equal(low, x)


def test_explain_lists_the_operations_of_each_field(tmp_path: Path, array: Any) -> None:
    pair = [(saved(tmp_path / "a.npy", array), saved(tmp_path / "m.npy", array))]
    text = opened(pair).random_crop((4, 4, 4)).random_flip((0,)).random_gamma().explain()
    assert "image: random_gamma" in text and "mask: random_gamma" not in text
    assert "mask: random_flip(axes=(0), p=0.5)" in text
