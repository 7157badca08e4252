# SPDX-License-Identifier: Apache-2.0
"""Presets behave like their originals: the same pixels if nothing is drawn, and otherwise the same operations."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from made_data import write_tar

import feedline
from feedline import presets


def test_evaluation_has_the_pixels_of_the_originals(folder: Path) -> None:
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    from PIL import Image
    from torchvision.transforms import _presets, v2

    bicubic = v2.InterpolationMode.BICUBIC
    clip = torchvision.transforms.Compose(
        [
            torchvision.transforms.Resize(32, interpolation=bicubic),
            torchvision.transforms.CenterCrop(32),
            torchvision.transforms.ToTensor(),
            torchvision.transforms.Normalize(presets.CLIP_MEAN, presets.CLIP_STD),
        ]
    )
    imagenet = _presets.ImageClassification(crop_size=32, resize_size=36)
    paths = sorted(folder.glob("*/*.jpg"))
    for preset, original in (
        (presets.imagenet_eval(folder, size=32, resize=36), imagenet),
        (presets.clip_eval(str(folder), size=32), clip),
    ):
        loader = preset.dataset.loader(**preset.loader, output="numpy")
        images = np.concatenate([batch[0] for batch in loader])
        assert len(images) == len(paths) == 21
        for image, path in zip(images, paths, strict=True):
            np.testing.assert_array_equal(image, original(Image.open(path)).numpy())


def test_training_has_the_operations_of_the_originals(folder: Path) -> None:
    dataset, options = presets.imagenet_train(feedline.open(folder), batch_size=5)
    crop, flip, normalize = dataset.operations
    assert crop.startswith("random_resized_crop(224, 224, scale=(0.08, 1), ratio=(0.75, 1.3333333333333333)")
    assert "interpolation" not in crop and flip == "random_horizontal_flip(p=0.5)", "bilinear goes without saying"
    assert "0.485, 0.456, 0.406" in normalize and "0.229, 0.224, 0.225" in normalize
    image, label = next(iter(dataset.loader(**options, output="numpy")))
    assert image.shape == (5, 3, 224, 224) and image.dtype == np.float32 and label.shape == (5,)
    train, options = presets.imagenet_train_v2(folder, size=16, batch_size=6)
    names = [operation.partition("(")[0] for operation in train.operations]
    crop_to_augmentation = ["random_resized_crop", "random_horizontal_flip", "trivial_augment_wide"]
    assert names == [*crop_to_augmentation, "normalize", "random_erasing"]
    with train.loader(**options, output="numpy") as loader:
        image, target = next(iter(loader))
        assert image.shape == (6, 3, 16, 16) and target.shape == (6, 3)
        assert "each sample 4 times" in loader.explain() and "mixup with alpha 0.2" in loader.explain()
    crop, normalize = presets.clip_train(folder).dataset.operations
    assert "224, 224, scale=(0.9, 1)" in crop and "bicubic" in crop
    assert "mean=(0.4814546" in normalize


def test_a_preset_is_a_dataset_and_arguments_to_continue_from(folder: Path) -> None:
    train, options = presets.imagenet_train(folder, size=16, batch_size=4)
    with train.loader(**options | {"mixup": 0.2, "cutmix": 1.0, "output": "numpy"}) as loader:
        assert "random_resized_crop(16, 16" in loader.explain()
        assert next(iter(loader))[1].shape == (4, 3)
    for make in (
        presets.imagenet_train,
        presets.imagenet_train_v2,
        presets.imagenet_eval,
        presets.clip_train,
        presets.clip_eval,
        presets.simclr,
        presets.dino,
        presets.yolo,
        presets.llm_pretraining,
    ):
        assert "Raises:" in (make.__doc__ or ""), "the docstring names errors"
        assert any(source in (make.__doc__ or "") for source in (".py", "references/", " et al.")), "and a source"
        with pytest.raises(feedline.StorageError, match="no-such-folder"):
            make("no-such-folder")


def test_views_have_the_chains_of_the_papers(folder: Path) -> None:
    train, options = presets.simclr(folder, size=32, strength=0.5, batch_size=6)
    with train.loader(**options, output="numpy") as loader:
        batch = next(iter(loader))
    assert batch.image_0.shape == batch.image_1.shape == (6, 3, 32, 32) and batch.image_0.dtype == np.float32
    assert batch.image_0.min() >= 0 and batch.image_0.max() <= 1 and (batch.image_0 != batch.image_1).any()
    assert "kernel_size=(3, 3)" in repr(train) and "brightness=(0.6, 1.4)" in repr(train)
    train, options = presets.dino(folder, size=32, local_size=16, local_crops=3, batch_size=6)
    with train.loader(**options, output="numpy") as loader:
        batch = next(iter(loader))
    assert [field.shape for field in batch[:3]] == [(6, 3, 32, 32), (6, 3, 32, 32), (6, 3, 3, 16, 16)]
    drawn = {(one.view, one.operation) for i in range(21) for one in train.draw(i)}
    assert ("global_b", "random_solarize") in drawn and ("global_a", "random_solarize") not in drawn
    assert all(("global_a", "gaussian_blur") in {(o.view, o.operation) for o in train.draw(i)} for i in range(21))


def test_detection_has_boxes_that_fit_their_images(folder: Path, tmp_path: Path) -> None:
    samples = []
    for number, path in enumerate(sorted(folder.glob("*/*.jpg"))):
        boxes = np.array([[2, 3, 20, 18], [5, 5, 9, 30], [0, 0, 40, 40]], np.float32)
        files = {"jpg": path.read_bytes(), "boxes.npy": npy(boxes), "labels.npy": npy(np.arange(3))}
        samples += [(f"{number:03}.{name}", data) for name, data in files.items()]
    write_tar(tmp_path / "shard.tar", samples)
    source = feedline.open(tmp_path / "shard.tar", fields=["jpg", "boxes.npy:boxes", "labels.npy"])
    train, options = presets.detection(source, batch_size=5)
    with train.loader(**options, output="numpy") as loader:
        for batch in loader:
            for image, boxes, labels in zip(*batch, strict=True):
                height, width = image.shape[1:]
                assert image.dtype == np.float32 and len(boxes) == len(labels)
                assert (boxes >= 0).all() and (boxes[:, 2] <= width).all() and (boxes[:, 3] <= height).all()


def test_tokens_are_the_windows_of_the_original(tmp_path: Path) -> None:
    """nanoGPT's get_batch: x from a position, y from the next one; here every position once."""
    tokens = np.random.default_rng(3).integers(0, 50257, 200).astype(np.uint16)
    tokens[[40, 90]] = 50256
    tokens.tofile(tmp_path / "train.bin")
    np.save(tmp_path / "train.npy", tokens.astype(np.int32))
    for path in (tmp_path / "train.bin", tmp_path / "train.npy", [str(tmp_path / "train.bin")]):
        train, options = presets.llm_pretraining(path, window=8, batch_size=16)
        with train.loader(**options, output="numpy") as loader:
            batches = list(loader)
        assert options == {"batch_size": 16, "shuffle": True, "drop_last": True} and len(train) == 192
        x, y = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
        assert x.shape == y.shape == (192, 8) and x.dtype == y.dtype == np.int64
        starts = {tuple(tokens[i : i + 9].tolist()) for i in range(192)}
        assert {(*a, b[-1]) for a, b in zip(x.tolist(), y.tolist(), strict=True)} == starts
        assert (x[:, 1:] == y[:, :-1]).all() and not (x[0] == tokens[:8]).all()
    apart, _ = presets.llm_pretraining(tmp_path / "train.bin", window=50, stride=50, separator=50256)
    assert len(apart) == 3 and apart[0].document.tolist() == [0] * 41 + [1] * 9 and apart[0].y[40] == -100
    with pytest.raises(feedline.ConfigError, match="window"):
        presets.llm_pretraining(tmp_path / "train.bin")


def test_texts_are_padded_to_the_longest_of_their_batch(tmp_path: Path) -> None:
    from made_tokenizers import BOS, Bytes

    words = ["a" * (1 + 7 * i % 40) for i in range(48)]
    lines = [json.dumps({"text": text, "label": i}) for i, text in enumerate(words)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines) + "\n")
    train, options = presets.text_classification(tmp_path / "train.jsonl", Bytes(), max_length=32, batch_size=6)
    seen, widths = set(), set()
    with train.loader(**options, output="numpy") as loader:
        for batch in loader:
            widths.add(batch.input_ids.shape[1])
            assert batch.input_ids.shape[1] == batch.input_ids_length.max()
            mask = np.arange(batch.input_ids.shape[1]) < batch.input_ids_length[:, None]
            assert batch.input_ids.dtype == np.int64 and (batch.input_ids[~mask] == 0).all()
            for ids, length, label in zip(batch.input_ids, batch.input_ids_length, batch.label, strict=True):
                expected = [BOS, *words[int(label)].encode()][:32]
                assert length == len(expected) and ids[:length].tolist() == expected
                seen.add(int(label))
    assert seen == set(range(48)) and len(widths) > 1


def test_a_preset_for_unattended_jobs(folder: Path) -> None:
    preset = presets.imagenet_train(folder, size=16, batch_size=4)
    train, options = presets.on_cluster(preset, memory_budget="64 MB")
    assert "device" not in options and presets.on_cluster(preset, device="cuda").loader["device"] == "cuda"
    bad = sorted(folder.glob("*/*.jpg"))[3]
    good = bad.read_bytes()
    bad.write_bytes(good[:40])
    try:
        with train.loader(**options, output="numpy") as loader:
            assert sum(len(batch[0]) for batch in loader) == 20 and len(loader.errors) == 1
            explained = loader.explain()
    finally:
        bad.write_bytes(good)
    assert "threads" in explained and "64" in explained


def npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()
