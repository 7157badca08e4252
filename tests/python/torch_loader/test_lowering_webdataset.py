# SPDX-License-Identifier: Apache-2.0
"""webdataset's pipelines: its own order, splits and errors, with images that the engine decodes in the workers."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, plan_of
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader

from feedline import ConfigError, DataLoader

wds = pytest.importorskip("webdataset", reason="webdataset is not installed")


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


def _image(number: int, form: str) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number % 7, 24, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    tar.addfile(member, io.BytesIO(data))


def tar_of(path: Path, samples: dict[str, dict[str, bytes]]) -> str:
    """A shard of samples with these fields; returns its path."""
    with tarfile.open(path, "w") as tar:
        for key, fields in samples.items():
            for extension, data in fields.items():
                _add(tar, f"{key}.{extension}", data)
    return str(path)


def write_shard(path: Path, numbers: range, bad: tuple[int, ...] = ()) -> str:
    samples = {}
    for number in numbers:
        form = "PNG" if number % 3 == 0 else "JPEG"
        data = b"no image" if number in bad else _image(number, form)
        samples[f"{number:04}"] = {
            "png" if form == "PNG" else "jpg": data,
            "cls": str(number % 10).encode(),
            "json": b'{"number": %d}' % number,
        }
    return tar_of(path, samples)


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return [write_shard(tmp_path / f"{i}.tar", range(12 * i, 12 * i + 12)) for i in range(4)]


def pipeline(shards, *, shuffle: int = 0, handler=None, decode: str = "pil"):
    options = {} if handler is None else {"handler": handler}
    data = wds.WebDataset(shards, shardshuffle=False, seed=3)
    if shuffle:
        data = data.shuffle(shuffle, seed=7)
    return data.decode(decode, **options)


def resized(vision, *more):
    transforms = vision.transforms
    return transforms.Compose([transforms.Resize((16, 16)), transforms.ToTensor(), *more])


def assert_same_as_torch(
    data, *, plan: str = "prefix", workers: int = 2, batch_size: int | None = 5, **options
) -> None:
    ours = DataLoader(data, batch_size=batch_size, num_workers=workers, **options)
    assert plan_of(ours) == plan, ours.explain()
    assert_same(list(ours), list(TorchLoader(data, batch_size=batch_size, num_workers=workers, **options)))


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("shuffle", [0, 20])
def test_samples_order_and_splits_are_webdatasets(vision, shards, workers, shuffle):
    data = pipeline(shards, shuffle=shuffle).to_tuple("jpg;png", "cls").map_tuple(resized(vision), None)
    assert_same_as_torch(data, workers=workers)


def test_a_shuffle_between_decoding_and_the_transform_holds_encoded_images(vision, shards):
    data = pipeline(shards).shuffle(9, seed=1).to_tuple("jpg;png", "cls").map_tuple(resized(vision))
    assert_same_as_torch(data)


def test_fields_of_dicts_are_transformed_by_their_key(vision, shards):
    flipped = vision.transforms.Compose([*resized(vision).transforms, vision.transforms.Lambda(torch.neg)])
    data = pipeline(shards[:1]).rename(image="jpg;png").map_dict(image=flipped).to_tuple("image", "cls", "json")
    assert_same_as_torch(data, workers=1)


def test_images_that_no_transform_is_for_come_out_decoded(vision, shards, monkeypatch):
    monkeypatch.setattr(wds.handlers, "time", SimpleNamespace(sleep=lambda _: None))  # half a second for each warning
    data = pipeline(shards).map_dict(jpg=resized(vision), handler=wds.warn_and_continue)
    with pytest.warns(UserWarning):  # samples with a PNG have no such field
        same = list(DataLoader(data, batch_size=None))
    theirs = list(TorchLoader(data, batch_size=None))
    assert [sample["__key__"] for sample in same] == [sample["__key__"] for sample in theirs]
    two = pipeline(shards).to_tuple("jpg;png", "jpg;png").map_tuple(resized(vision), None)
    assert plan_of(DataLoader(two)) == "prefix"
    for (tensor, image), (other_tensor, other) in zip(two_of(DataLoader, two), two_of(TorchLoader, two), strict=True):
        assert_same(tensor, other_tensor)
        assert image.tobytes() == other.tobytes()


def two_of(loader, data):
    return list(loader(data, batch_size=None))


def test_batches_that_webdataset_makes_itself(vision, shards):
    data = pipeline(shards).to_tuple("jpg;png", "cls").map_tuple(resized(vision), None).batched(5)
    assert_same_as_torch(data, batch_size=None)


def test_the_functional_way_to_write_it(vision, shards):
    data = wds.DataPipeline(
        wds.SimpleShardList(shards),
        wds.split_by_worker,
        wds.tarfile_to_samples(),
        wds.decode("pilrgb"),
        wds.to_tuple("jpg;png", "cls"),
        wds.map_tuple(resized(vision), None),
    )
    assert_same_as_torch(data)


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_workers_that_are_not_forked(vision, shards, context):
    if not hasattr(vision, "__version__"):
        pytest.skip("the stand-in for torchvision is not there in a fresh process")
    data = pipeline(shards).to_tuple("jpg;png", "cls").map_tuple(resized(vision), None)
    assert_same_as_torch(data, multiprocessing_context=context)


def test_random_transforms_are_redrawn_for_every_sample_and_again_from_the_same_seed(vision, tmp_path):
    same = [write_shard(tmp_path / f"{i}.tar", range(1)) for i in range(30)]
    crop = vision.transforms.Compose([vision.transforms.RandomResizedCrop(8), vision.transforms.ToTensor()])
    data = pipeline(same).to_tuple("jpg;png").map_tuple(crop)
    runs = []
    for _ in range(2):
        torch.manual_seed(4)
        runs.append(torch.cat([images for (images,) in DataLoader(data, batch_size=5, num_workers=2)]))
    assert torch.equal(*runs)
    assert len({tuple(image.flatten().tolist()) for image in runs[0]}) == 30


@pytest.mark.parametrize("handler", [None, "warn_and_continue"])
def test_a_bad_image_is_what_it_is_without_the_engine(vision, tmp_path, handler):
    handler = handler and getattr(wds, handler)
    shard = write_shard(tmp_path / "bad.tar", range(10), bad=(4,))
    options = {} if handler is None else {"handler": handler}
    data = pipeline([shard], handler=handler).to_tuple("jpg;png", "cls").map_tuple(resized(vision), None, **options)
    assert plan_of(DataLoader(data)) == "prefix"
    outcomes = []
    for loader in (DataLoader, TorchLoader):
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("warnings.warn", lambda *_, **__: None)
                outcomes.append([label for _, labels in loader(data, batch_size=3) for label in labels.tolist()])
        except Exception as error:
            outcomes.append(type(error).__name__)
    assert outcomes[0] == outcomes[1] == ([0, 1, 2, 3, 5, 6, 7, 8, 9] if handler else "DecodingError")


def test_what_stays_in_python_and_why(vision, shards):
    to_tensor = resized(vision)

    def reason(data) -> str:
        loader = DataLoader(data, num_workers=2)
        assert plan_of(loader) == "python"
        return loader.explain()

    decoded = pipeline(shards)
    assert "select may read decoded images" in reason(decoded.select(bool).map_dict(jpg=to_tensor))
    assert "images are not transformed" in reason(decoded.to_tuple("jpg;png", "cls"))
    assert "does not decode images to RGB or L" in reason(pipeline(shards, decode="rgba8").map_dict(jpg=to_tensor))
    handled = pipeline(shards, handler=wds.warn_and_continue)
    shuffled = handled.shuffle(5).map_dict(jpg=to_tensor, handler=wds.warn_and_continue)
    assert "skipped before the shuffle" in reason(shuffled)

    class Mine(wds.WebDataset):
        pass

    mine = Mine(shards, shardshuffle=False).decode("pil").map_dict(jpg=to_tensor)
    assert "an IterableDataset produces its samples itself" in reason(mine)


def test_explain_names_the_stages_and_require_refuses_what_is_only_begun(vision, shards):
    data = pipeline(shards).to_tuple("jpg;png", "cls").map_tuple(resized(vision), None)
    text = DataLoader(data, num_workers=2).explain()
    assert "webdataset determines shards, splits and shuffling" in text
    assert "transform  Resize" in text and "native, within each worker: as on PIL images" in text
    with pytest.raises(ConfigError, match=r"read \(tar files\): webdataset reads"):
        DataLoader(data, lower="require")
    assert plan_of(DataLoader(data, lower="never")) == "python"
