# SPDX-License-Identifier: Apache-2.0
"""webdataset's pipelines with several fields, compared with torch's loader: images, masks and all other fields."""

from __future__ import annotations

import io
import itertools
import json
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import stand_in_torchvision
import torch
from lowered import assert_same, plan_of
from PIL import Image
from test_lowering_webdataset import tar_of
from torch.utils.data import DataLoader as TorchLoader

from feedline import ConfigError, DataLoader
from feedline.torch_loader.lowering import webdataset_pipelines as native_webdataset

wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
_SPECS = ("rgb8", "rgb", "l8", "l", "torch", "torchrgb", "torchrgb8", "torchl", "torchl8")
_FIELDS = ("left.jpg;left.png", "right.jpg", "mask.png", "json", "cls", "txt", "npy", "bin")


@pytest.fixture(scope="module")
def vision():
    with stand_in_torchvision.vision() as module:
        yield module


@pytest.fixture(autouse=True)
def quick_warnings(monkeypatch):
    monkeypatch.setattr(wds.handlers, "time", SimpleNamespace(sleep=lambda _: None))  # half a second for each
    monkeypatch.setattr(wds.filters, "time", SimpleNamespace(time=lambda: 0.0))


def encoded(image: Image.Image, form: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return stream.getvalue()


def photograph(number: int, form: str) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (20 + number % 7, 24, 3), dtype=np.uint8)
    return encoded(Image.fromarray(pixels), form)


def mask(number: int) -> bytes:
    """Returns labels: with a palette, or grey."""
    labels = Image.fromarray(np.random.default_rng(number).integers(0, 5, (22, 24), dtype=np.uint8))
    if number % 2:
        labels.putpalette(np.random.default_rng(1).integers(0, 256, 768, dtype=np.uint8).tobytes())
    return encoded(labels, "PNG")


def array(number: int) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(3, dtype=np.float32) + number)
    return stream.getvalue()


def fields_of(number: int) -> dict[str, bytes]:
    left = {"left.png": photograph(number, "PNG")} if number % 3 == 0 else {"left.jpg": photograph(number, "JPEG")}
    return {
        **left,
        "right.jpg": photograph(number + 1000, "JPEG"),
        "mask.png": mask(number),
        "json": json.dumps({"number": number, "boxes": [number, 0.5], "words": "a b"}).encode(),
        "cls": str(number % 10).encode(),
        "txt": f"Übung {number}".encode(),
        "npy": array(number),
        "bin": bytes([number, 255]),
    }


def write(path: Path, numbers, changed: dict[int, dict[str, bytes | None]] | None = None) -> str:
    """A shard with fields_of() each number; `changed` contains differences, None if the field is missing."""
    samples = {}
    for number in numbers:
        fields: dict[str, bytes | None] = {**fields_of(number), **(changed or {}).get(number, {})}
        samples[f"{number:04}"] = {name: data for name, data in fields.items() if data is not None}
    return tar_of(path, samples)


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    return [write(tmp_path / f"{i}.tar", range(8 * i, 8 * i + 8)) for i in range(3)]


def opened(shards, **options):
    return wds.WebDataset(shards, shardshuffle=False, seed=3, **options)


def resized(vision, size: int = 16, *more):
    transforms = vision.transforms
    return transforms.Compose([transforms.Resize((size, size)), transforms.ToTensor(), *more])


def nearest(vision):
    transforms = vision.transforms
    resize = transforms.Resize((8, 8), interpolation=getattr(transforms, "InterpolationMode", Image.Resampling).NEAREST)
    return transforms.Compose([resize, transforms.PILToTensor()])


def samples_of(loader, data, **options) -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(loader(data, **options))


def assert_same_as_torch(data, *, plan: str = "prefix", **options) -> None:
    ours = DataLoader(data, **options)
    assert plan_of(ours) == plan, ours.explain()
    theirs = TorchLoader(data, **options)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, expected = list(ours), list(theirs)
        assert found
        assert_same(found, expected)


def outcome(loader, data, **options):
    """Returns the samples before the error, and its message."""
    found: list = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in loader(data, batch_size=None, **options):
                found.append(sample)
    except Exception as error:
        told = tuple(getattr(error, name, None) for name in ("key", "url", "k", "sample"))
        return found, (type(error), str(error).partition("\n")[0], told)
    return found, None


def assert_same_outcome(data, *, fails: bool | None = None) -> None:
    assert plan_of(DataLoader(data)) == "prefix", DataLoader(data).explain()
    ours, theirs = outcome(DataLoader, data), outcome(TorchLoader, data)
    assert_same(ours[0], theirs[0])
    assert ours[1] == theirs[1]
    if fails is not None:
        assert (ours[1] is not None) == fails


# -- delivered samples


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shuffle", [0, 11])
def test_images_masks_and_all_other_fields_are_what_torchs_loader_gives(vision, shards, workers, shuffle):
    data = opened(shards)
    if shuffle:
        data = data.shuffle(shuffle, seed=7)
    data = data.decode("pil").to_tuple(*_FIELDS)
    data = data.map_tuple(resized(vision), resized(vision, 12), nearest(vision))
    assert_same_as_torch(data, batch_size=5, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_dicts_of_transforms_one_after_the_other(vision, shards, workers):
    data = opened(shards).decode("pil").rename(left="left.jpg;left.png").map_dict(json=lambda value: value["boxes"])
    more = {"right.jpg": resized(vision, 9), "mask.png": nearest(vision)}
    data = data.map_dict(left=resized(vision)).map_dict(**more)
    assert_same_as_torch(data, batch_size=4, num_workers=workers)


def test_fields_found_by_pattern_and_a_rest_in_python(vision, shards):
    halved = resized(vision, 16, vision.transforms.Lambda(lambda image: image / 2))
    data = opened(shards).decode("pil").extract_keys("left.*", "*.json;json", "mask.png").map_tuple(halved, len)
    data = data.map_tuple(None, None, nearest(vision))
    assert_same_as_torch(data, batch_size=4)


def test_images_that_keep_their_sizes(vision, shards):
    transforms = vision.transforms
    data = opened(shards).decode("pil").to_tuple("left.jpg;left.png", "mask.png")
    data = data.map_tuple(transforms.ToTensor(), transforms.Compose([transforms.Grayscale(), transforms.PILToTensor()]))
    assert_same_as_torch(data, batch_size=None)
    as_image = transforms.Compose([transforms.Resize(10), transforms.Lambda(np.asarray)])
    assert_same_as_torch(opened(shards).decode("pil").to_tuple("right.jpg").map_tuple(as_image), batch_size=None)


@pytest.mark.parametrize("spec", _SPECS)
def test_arrays_and_tensors_by_webdatasets_names(shards, spec):
    assert_same_as_torch(opened(shards).decode(spec), batch_size=None)
    functional = wds.DataPipeline(wds.SimpleShardList(shards), wds.tarfile_to_samples(), wds.decode(spec))
    assert_same_as_torch(functional, batch_size=None)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_handler_for_each_extension(vision, shards, workers):
    photographs, labels = wds.imagehandler("pil", ["jpg", "png"]), wds.imagehandler("torchl8", ["png"])
    data = opened(shards).decode(labels, photographs).to_tuple("right.jpg", "mask.png", "cls")
    assert_same_as_torch(data.map_tuple(resized(vision)), batch_size=4, num_workers=workers)


def test_fields_decoded_one_stage_after_the_other(vision, shards):
    data = opened(shards).decode("pil", only=["right.jpg"]).decode("torchl8", partial=True)
    data = data.to_tuple("right.jpg", "mask.png", "json").map_tuple(resized(vision))
    assert_same_as_torch(data, batch_size=4)


def test_a_handler_of_ones_own_gets_its_fields_as_ever(vision, shards):
    own = wds.handle_extension("mask.png", len)
    data = opened(shards).decode(own, "pil").to_tuple("right.jpg", "mask.png").map_tuple(resized(vision))
    assert_same_as_torch(data, batch_size=4)
    assert "the handler is user code" in DataLoader(data).explain()


def test_batches_that_webdataset_makes_and_rebuilds(vision, shards):
    data = opened(shards).decode("pil").to_tuple("left.jpg;left.png", "json", "npy", "cls").map_tuple(resized(vision))
    assert_same_as_torch(data.batched(5), batch_size=None, num_workers=2)
    found = []
    for loader in (DataLoader, TorchLoader):
        inner = loader(data.batched(4), batch_size=None, num_workers=2)
        found.append(list(wds.DataPipeline(inner, wds.unbatched(), wds.shuffle(7, seed=2), wds.batched(6))))
    assert_same(*found)


def kinds() -> dict[str, bytes]:
    """Images of every kind that a conversion to RGB or L has a rule for."""
    draw = np.random.default_rng(2)
    colour = Image.fromarray(draw.integers(0, 256, (13, 17, 3), dtype=np.uint8))
    alpha = Image.fromarray(draw.integers(0, 256, (13, 17, 4), dtype=np.uint8))
    palette = colour.quantize(16)
    deep = Image.fromarray(draw.integers(0, 65536, (13, 17), dtype=np.uint16))
    return {
        "rgb.png": encoded(colour, "PNG"),
        "rgba.png": encoded(alpha, "PNG"),
        "grey.png": encoded(colour.convert("L"), "PNG"),
        "greya.png": encoded(alpha.convert("LA"), "PNG"),
        "bit.png": encoded(colour.convert("1"), "PNG"),
        "deep.png": encoded(deep, "PNG"),
        "palette.png": encoded(palette, "PNG"),
        "clear.png": encoded(palette, "PNG", transparency=3),
        "rgb.jpg": encoded(colour, "JPEG"),
        "grey.jpg": encoded(colour.convert("L"), "JPEG"),
        "cmyk.jpg": encoded(colour.convert("CMYK"), "JPEG"),
        "rgb.webp": encoded(colour, "WEBP", lossless=True),
        "rgba.webp": encoded(alpha, "WEBP", lossless=True),
        "turned.jpg": encoded(colour, "JPEG", exif=_turned()),
        "foreign.png": encoded(colour, "GIF"),
        "upper.jpeg": encoded(colour, "PNG"),
        "left.bmp": encoded(colour, "BMP"),
    }


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


@pytest.mark.parametrize("spec", ["pil", "pill", "rgb8", "l8", "torchl"])
def test_images_of_every_kind_have_pillows_pixels(vision, tmp_path, spec):
    shard = tar_of(tmp_path / "kinds.tar", {f"{i:03}": {k: v} for i, (k, v) in enumerate(kinds().items())})
    data = opened([shard]).decode(spec)
    if spec.startswith("pil"):
        data = data.rename(image=";".join(kinds())).map_dict(image=nearest(vision))
    assert_same_as_torch(data, batch_size=None)


@pytest.fixture
def opened_by_pillow(monkeypatch) -> list[int]:
    """Counts the bytes of the images that Pillow opens in this process."""
    sizes: list[int] = []

    def note(stream, *arguments, _open=Image.open, **options):
        sizes.append(len(stream.getvalue()))
        return _open(stream, *arguments, **options)

    monkeypatch.setattr(Image, "open", note)
    return sizes


@pytest.mark.parametrize("spec", ["pil", "pilrgb", "pill", *_SPECS])
def test_pillow_opens_nothing_that_the_engine_reads(vision, shards, tmp_path, spec, opened_by_pillow):
    whole = vision.transforms.PILToTensor()
    data = opened(shards).decode(spec)
    if spec.startswith("pil"):
        data = data.rename(left="left.jpg;left.png").map_dict(left=resized(vision))
        data = data.map_dict(**{"right.jpg": whole, "mask.png": nearest(vision)})
    assert len(samples_of(DataLoader, data, batch_size=None)) == 24
    assert opened_by_pillow == []
    shard = tar_of(tmp_path / "kinds.tar", {f"{i:03}": {k: v} for i, (k, v) in enumerate(kinds().items())})
    data = opened([shard]).decode(spec)
    if spec.startswith("pil"):
        data = data.rename(image=";".join(kinds())).map_dict(image=whole)
    assert len(samples_of(DataLoader, data, batch_size=None)) == len(kinds())
    assert opened_by_pillow == [len(kinds()[name]) for name in ("foreign.png", "left.bmp")]


def test_grey_images_go_through_every_transform_that_is_known(vision, shards):
    transforms = vision.transforms
    for name, options in {
        "Resize": (9,),
        "CenterCrop": (11,),
        "Pad": (3, 7),
        "RandomHorizontalFlip": (1.0,),
        "RandomVerticalFlip": (1.0,),
        "Grayscale": (3,),
        "RandomCrop": ((22, 24),),
    }.items():
        if not hasattr(transforms, name):
            continue
        chain = transforms.Compose([getattr(transforms, name)(*options), transforms.ToTensor()])
        assert_same_as_torch(opened(shards[:1]).decode("pill").to_tuple("mask.png").map_tuple(chain), batch_size=None)
    normalized = resized(vision, 16, transforms.Normalize([0.5], [0.25]))
    data = opened(shards).decode("pill").to_tuple("left.png;left.jpg").map_tuple(normalized)
    assert_same_as_torch(data, batch_size=4)


def test_what_workers_are_sent_can_be_pickled_while_it_is_read(vision, shards):
    data = opened(shards).decode(wds.imagehandler("l8", ["png"]), "pil").to_tuple("right.jpg", "mask.png", "json")
    sent = native_webdataset.wrap(data.map_tuple(resized(vision)))
    expected = list(sent)  # and its readers exist
    assert_same(list(pickle.loads(pickle.dumps(sent))), expected)
    assert_same_as_torch(data.map_tuple(resized(vision)), batch_size=4)


# -- random numbers, epochs, states


def test_images_of_a_sample_are_drawn_for_apart(vision, tmp_path):
    same = photograph(1, "PNG")
    shard = tar_of(tmp_path / "same.tar", {f"{i:03}": {"left.png": same, "right.png": same} for i in range(24)})
    crop = vision.transforms.Compose([vision.transforms.RandomResizedCrop(8), vision.transforms.ToTensor()])
    data = opened([shard]).decode("pil").to_tuple("left.png", "right.png").map_tuple(crop, crop)
    runs = []
    for _ in range(2):
        torch.manual_seed(4)
        runs.append([torch.stack(pair) for pair in DataLoader(data, batch_size=None)])
    assert all(torch.equal(*pair) for pair in zip(*runs, strict=True))
    drawn = {tuple(image.flatten().tolist()) for pair in runs[0] for image in pair}
    assert len(drawn) == 48


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_state_resumes_with_the_samples_that_were_not_given_yet(vision, shards, workers, after):
    def made():
        data = opened(shards).shuffle(9, seed=7).decode("pil").to_tuple(*_FIELDS)
        data = data.map_tuple(resized(vision), resized(vision), nearest(vision))
        return DataLoader(data, batch_size=4, num_workers=workers)

    whole = list(made())
    first = made()
    taken = list(itertools.islice(iter(first), after))
    state = json.loads(json.dumps(first.state_dict()))
    second = made()
    second.load_state_dict(state)
    assert_same(taken + list(second), whole)
    assert_same(list(second), whole)


# -- bad samples

_WRONG = {
    "no right": {"right.jpg": None},
    "text": {"txt": b"\xff\xfe\xfa"},
    "JSON": {"json": b'{"number": '},
    "class": {"cls": b"cat"},
    "array": {"npy": b"no array"},
    "image": {"right.jpg": b"no image"},
    "half an image": {"right.jpg": photograph(4, "JPEG")[:300]},
    "mask": {"mask.png": mask(4)[:60]},
    "image and no JSON": {"right.jpg": b"no image", "json": None},
    "image and JSON": {"json": b"{", "right.jpg": b"no image"},
}
_HANDLERS = (None, "ignore_and_continue", "ignore_and_stop")


@pytest.mark.parametrize("wrong", _WRONG)
@pytest.mark.parametrize("decode", _HANDLERS)
@pytest.mark.parametrize("later", _HANDLERS)
def test_errors_and_handlers_are_webdatasets(vision, tmp_path, wrong, decode, later):
    def handler(name):
        return {} if name is None else {"handler": getattr(wds, name)}

    shard = write(tmp_path / "wrong.tar", range(8), {4: _WRONG[wrong]})
    data = opened([shard]).decode("pil", **handler(decode)).to_tuple(*_FIELDS, **handler(later))
    data = data.map_tuple(resized(vision), resized(vision), nearest(vision), lambda value: value["number"])
    assert_same_outcome(data, fails=decode is None if "image" in wrong and decode else None)


@pytest.mark.parametrize("how", ["extract_keys", "rename_keys", "rename", "partial decode"])
def test_a_bad_image_is_reported_before_what_follows_decode(vision, tmp_path, how):
    refused = {"json": b"{" if how == "partial decode" else None}
    both = {4: {**refused, "right.jpg": b"no image"}}
    for skip, changed in itertools.product((True, False), (both, {2: refused, **both})):
        shard = write(tmp_path / "wrong.tar", range(8), changed)
        handler = {"handler": wds.ignore_and_continue} if skip else {}
        data = opened([shard]).decode("pil", only=["right.jpg"], **handler)
        if how == "extract_keys":
            data = data.extract_keys("right.jpg", "json").map_tuple(resized(vision), len)
        elif how == "rename_keys":
            data = data.rename_keys(handler="json", image="right.jpg").map_dict(image=resized(vision))
        elif how == "rename":
            data = data.rename(image="right.jpg", words="json", handler=wds.ignore_and_stop)
            data = data.map_dict(image=resized(vision))
        else:
            data = data.decode(partial=True, handler=wds.ignore_and_stop).map_dict(**{"right.jpg": resized(vision)})
        assert_same_outcome(data)


def test_a_bad_image_that_no_transform_is_for_goes_to_decodes_handler(vision, tmp_path):
    shard = write(tmp_path / "wrong.tar", range(8), {4: {"mask.png": b"no image"}})
    data = opened([shard]).decode("pil", handler=wds.ignore_and_continue).map_dict(**{"right.jpg": resized(vision)})
    data = data.to_tuple("right.jpg", "cls")
    assert_same_outcome(data, fails=False)
    assert len(outcome(DataLoader, data)[0]) == 7


def test_errors_of_a_function_after_the_known_ones_are_the_map_stages(vision, tmp_path):
    def refuse(image):
        if image.sum() > image.numel() / 2:
            raise ValueError("too bright")
        return image

    shard = write(tmp_path / "a.tar", range(8), {4: {"right.jpg": b"no image"}})
    for decode, later in itertools.product((wds.reraise_exception, wds.ignore_and_continue), repeat=2):
        data = opened([shard]).decode("pil", handler=decode).to_tuple("right.jpg", "cls")
        data = data.map_tuple(resized(vision, 16, vision.transforms.Lambda(refuse)), handler=later)
        assert_same_outcome(data)


def test_functions_see_no_sample_with_a_bad_image(vision, tmp_path):
    shard = write(tmp_path / "a.tar", range(8), {4: {"right.jpg": b"no image"}})
    seen: dict[str, list[int]] = {}
    for name, loader in (("ours", DataLoader), ("torch's", TorchLoader)):
        mine: list[int] = seen.setdefault(name, [])
        data = opened([shard]).decode("pil", handler=wds.ignore_and_continue).to_tuple("cls", "right.jpg")
        samples_of(loader, data.map_tuple(mine.append, resized(vision)), batch_size=None)
    assert seen["ours"] == seen["torch's"] == [0, 1, 2, 3, 5, 6, 7]


# -- messages


def test_explain_names_what_each_field_goes_through(vision, shards):
    data = opened(shards).decode("pil").to_tuple(*_FIELDS)
    data = data.map_tuple(resized(vision, 16, torch.neg), np.asarray, nearest(vision), None, int)
    text = DataLoader(data, num_workers=2).explain()
    assert "left.jpg;left.png: Resize" in text and "mask.png: PILToTensor" in text
    for name in ("left.jpg;left.png: neg", "right.jpg: asarray"):
        (line,) = (line for line in text.splitlines() if name in line and line.startswith("  transform"))
        assert "Python, in 2 worker processes" in line and "is not supported by the engine" in line
    with pytest.raises(ConfigError, match=r"transform \(right.jpg: asarray\): .* not supported by the engine"):
        DataLoader(data, lower="require")


def test_arrays_are_decoded_natively_whatever_follows(vision, shards):
    data = opened(shards).decode("rgb8").map(len)
    assert "JPEG, PNG, WebP (rgb8)  native, in this process" in DataLoader(data).explain()
    assert_same_as_torch(data, batch_size=None)
    both = opened(shards).decode(wds.imagehandler("l8", ["png"]), "pil").select(lambda sample: sample["cls"] > 3)
    assert "select may read decoded images" in DataLoader(both).explain()
    assert_same_as_torch(both.to_tuple("cls", "mask.png"), batch_size=None)


def test_the_step_that_keeps_images_in_python_is_named(vision, shards):
    def reason(data) -> str:
        loader = DataLoader(data, num_workers=2)
        assert plan_of(loader) == "python"
        return loader.explain()

    decoded = opened(shards).decode("pil")
    assert "map may read decoded images" in reason(decoded.map(dict).map_dict(cls=resized(vision)))
    assert "left.jpg: len is not supported" in reason(decoded.to_tuple("left.jpg", "cls").map_tuple(len, id))
    assert "does not decode images to RGB or L" in reason(opened(shards).decode("pilrgba").map_dict(cls=len))
    assert "not decode images to RGB or L" in reason(wds.DataPipeline(wds.SimpleShardList(shards), wds.decode("x")))
    again = decoded.decode("pil")
    assert "decode may read decoded images" in reason(again.map_dict(cls=resized(vision)))
