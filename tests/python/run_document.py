# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of documents in the folder of their data: `run_document.py [DOCUMENT]`.

Each document has its own process, which ends its signal handlers, threads and imports. Without DOCUMENT, this process
only imports torch. It then reads lines of a document and a file for its output, tab-separated, and for each of them
forks a process, waits for it and prints its exit status.
"""

from __future__ import annotations

import gc
import gzip
import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_audio
import made_megatron
import made_tiff
import made_volumes
import numpy as np
import torch

import feedline

Names = dict[str, Any]

# document and beginning of a block: the reason why it does not run here, and the test that runs it
NOT_RUN = {
    ("device.md", "loader = train."): "a GPU; tests/python/test_gpu.py",
    ("device.md", "train = feedline.open("): "a GPU; tests/python/test_device_cache.py",
    ("extending.md", "feedline.load_plugin("): "a compiled plugin; tests/python/test_plugins.py",
    ("findings.md", "# SPDX"): "a separate file; tests/python/findings/test_added_cause.py",
    ("fine-tuning-on-chats.md", ""): "a model; tests/python/test_token_tutorials.py",
    ("fine-tuning-with-images.md", ""): "a model; tests/python/test_token_tutorials.py",
    ("frameworks.md", "from feedline.integrations.meter"): "a tracker; tests/python/integrations/test_meter.py",
    (
        "frameworks.md",
        "from feedline.integrations import trackers",
    ): "trackers; tests/python/integrations/test_trackers.py",
    ("frameworks.md", "import feedline.integrations"): "frameworks; tests/python/integrations",
    ("lowering.md", "data = wds."): "webdataset; tests/python/torch_loader/test_lowering_webdataset_fields.py",
    ("operating.md", ""): "ports and frameworks; test_serve_metrics.py, test_reshard.py and integrations",
    ("packed-sequences.md", "chats = "): "a model; tests/python/test_packed_texts.py",
    ("parallelism.md", "from torch.distributed"): "ranks; tests/python/test_parallelism.py",
    ("pretraining.md", ""): "a model; tests/python/test_token_tutorials.py",
    ("reproducibility.md", "from torch.distributed"): "ranks; tests/python/integrations/test_torchrun.py",
    ("tokens.md", "chats = "): "a model; tests/python/test_tokens_of_chats.py",
    ("tokens.md", "import feedline"): "tokenizers; tests/python/test_tokens_of_text.py",
    ("tokens.md", "train = chats"): "a model; tests/python/test_packed_texts.py",
    ("tuning-live.md", "loader = feedline.DataLoader("): "many CPUs; tests/python/torch_loader/test_process_count.py",
    ("tune.md", "loader = DataLoader("): "settings that were tuned; tests/python/tune",
    ("vision-language.md", ""): "a model; tests/python/test_packed_images.py",
    ("videos.md", ""): "FFmpeg; tests/python/test_videos.py",
    ("volumes.md", ""): "files; tests/python/test_volumes.py",
    ("robots.md", ""): "FFmpeg; tests/python/test_lerobot.py",
}


def python_of(document: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)


def runs_elsewhere(document: Path, block: str) -> bool:
    return any(name == document.name and block.startswith(start) for name, start in NOT_RUN)


def guide_names() -> Names:
    tokens = feedline.tokens("train.bin", window=64, dtype="uint16")
    features = np.random.default_rng(0).random((600, 16), np.float32)
    names: Names = {"features": features, "labels": np.arange(600), "web": tokens, "books": tokens}
    return {**names, "flatten_labels": lambda annotation: {"keys": sorted(annotation)}}


def readme_holds(names: Names) -> None:
    """The last batch went through both loops."""
    assert (names["image"].shape, names["image"].dtype) == ((256, 3, 224, 224), torch.float32)
    assert (names["label"].shape, names["label"].dtype) == ((256,), torch.int64)
    assert (len(names["train"]), len(names["valid"])) == (270, 30)
    assert [int((labels == 0).sum()) for _, labels in names["valid"].loader(30)] == [10]


def guide_holds(names: Names) -> None:
    assert (names["image"].shape, names["image"].dtype) == ((256, 3, 224, 224), torch.float32)
    assert (names["label"].shape, names["label"].dtype) == ((256,), torch.int64)
    batch = next(iter(names["scenes"].loader(5)))
    assert batch._fields == ("jpg", "mask_png", "boxes_npy", "json") and len(batch.boxes_npy) == 5
    assert all(list(annotation) == ["keys"] for annotation in batch.json)
    assert {x.dtype for x in next(iter(names["text"]))} == {torch.int64}
    assert names["x"].shape == names["y"].shape and (names["y"] == -100).any()
    assert len(names["both"]) == 2 * len(names["web"])


def small(batch_size: int, **options: Any) -> Names:
    train = feedline.open("imagenet/train").random_resized_crop(16)
    return {"feedline": feedline, "train": train, "loader": train.loader(batch_size, **options)}


def extending_holds(names: Names) -> None:
    assert [line.text for line in names["lines"]] == ["one\n", "two\n"]
    stored = feedline.open("photos").resize((224, 224))
    assert np.array_equal(names["photos"][0].image, 255 - stored[0].image)


def fields_hold(names: Names) -> None:
    """The last batch is not full: 147 samples in batches of 64."""
    batch = names["batch"]
    assert (batch.left_jpg.shape, batch.left_jpg.dtype) == ((19, 3, 224, 224), torch.uint8)
    assert (batch.mask_png.shape, batch.mask_png.dtype) == ((19, 224, 224), torch.uint8)
    assert all(isinstance(rows, list) and len(rows) == 19 for rows in (batch.boxes_npy, batch.txt, batch.json))
    assert isinstance(batch.txt[0], str) and isinstance(batch.json[0], dict)
    assert len(names["scenes"]) == 147
    mapped = next(iter(names["mapped"].loader(4)))
    assert mapped.left_jpg.dtype == torch.float32 and mapped.left_jpg.shape == (4, 3, 224, 224)
    assert len(mapped.caption) == 4 and not hasattr(mapped, "txt")


def training_names() -> Names:
    train = feedline.open("imagenet/train").random_resized_crop(8)
    few = feedline.mix([train], samples=64)
    return {"train": few, "resume": False, "torch": torch, "path": "state.pt", "model": torch.nn.Linear(1, 1)}


def files_hold(names: Names) -> None:
    assert names["image"].shape[1:] == (3, 224, 224)
    assert names["train"].class_counts() == {"apple": 100, "birch": 100, "crow": 100}


def training_holds(names: Names) -> None:
    assert names["loader"].epoch == 90
    again = names["train"].loader(batch_size=64, shuffle=True, seed=0)
    again.load_state_dict(torch.load("state.pt")["loader"])
    assert again.epoch == 90, "the last batch of epoch 89 was saved last"


def mixing_holds(names: Names) -> None:
    """The first loader's last batch, and the second one's explanation."""
    assert names["images"].shape == (128, 3, 176, 176)
    assert names["targets"].shape == (128, 3) and torch.allclose(names["targets"].sum(1), torch.ones(128))
    assert "row i with row n - 1 - i; label holds the shares of 3 classes, smoothed by 0.1" in names["loader"].explain()


def sampling_holds(names: Names) -> None:
    """The first sampler's epoch, the fixed order, folds, and the last subsets."""
    assert len(names["few"]) == 4 and [names["fixed"].last_samples for _ in names["fixed"]] == [
        [3, 1, 4, 1, 5, 9, 2, 6]
    ]
    size = len(names["ds"])
    assert len(names["train"]) + len(names["valid"]) == size and len(names["longer"]) == 1000
    assert len(names["masked"]) == size // 2 and all(image.label == 0 for image in names["first"].take(2))


def views_hold(names: Names) -> None:
    batch = names["batch"]
    assert (batch.global_a.shape[1:], batch.local.shape[1:]) == ((3, 224, 224), (8, 3, 96, 96))


def recipes_hold(names: Names) -> None:
    """Views written by hand equal the preset's; the batches of the last blocks remain."""
    assert names["by_hand"].operations == feedline.presets.dino("imagenet/train").dataset.operations
    assert names["batch"].boxes_npy[0].shape[1] == 4 and names["batch"].jpg[0].dtype == torch.float32


def images_hold(names: Names) -> None:
    """The tutorial's resumed loader continues after the last epoch; the last evaluation batch is the remainder."""
    assert (len(names["train"]), len(names["valid"])) == (270, 30)
    assert names["again"].epoch == 2 and names["loader"].stats()["batches"] == 2 * (270 // 32)
    assert Path("augmented.png").stat().st_size > 1000


def token_files_hold(names: Names) -> None:
    assert (names["x"].shape, names["x"].dtype, names["steps"]) == ((4, 64), torch.int64, 3)
    assert len(names["both"]) == 2 * len(names["books"]) and (names["length"] > 0).all()


def remote_shards_hold(names: Names) -> None:
    assert names["image"].shape == (147 % 32, 3, 64, 64) and list(Path("nvme/feedline").rglob("*.object"))
    assert "cache" in names["loader"].explain()


def detection_holds(names: Names) -> None:
    """Twelve photos, a quarter of them without objects."""
    assert names["batch"].image.shape == (4, 3, 64, 64) and names["batch"].boxes[0].shape[1] == 4
    for target in names["targets"]:
        assert len(target["boxes"]) == len(target["labels"]) == len(target["masks"])
    assert len(names["coco"].classes) == 3 and Path("boxes.png").stat().st_size > 1000


def cluster_holds(names: Names) -> None:
    """The last saved state begins the next epoch."""
    assert names["loader"].epoch == 3 and torch.load("run.pt")["loader"]["epoch"] == 3
    assert not Path("run.unfinished").exists()


def custom_dataset_names() -> Names:
    """The paths and classes of the photos as lists, and with other columns as a table and as a CSV."""
    paths = sorted(Path("imagenet/train").rglob("*.*"))
    species = [path.parent.name for path in paths]
    rows = range(len(paths))
    frame: Any = {
        "path": [str(path) for path in paths],
        "species": species,
        "x": [row / 2 for row in rows],
        "y": [row / 4 for row in rows],
        "tags": [("", "red", "red green", "blue")[row % 4] for row in rows],
    }
    if importlib.util.find_spec("pandas"):
        frame = importlib.import_module("pandas").DataFrame(frame)
    Path("numbered/a").mkdir(parents=True)
    for number, path in enumerate(paths[:3]):
        Path(f"numbered/a/{number:04d}.jpg").symlink_to(path.absolute())
    Path("photos.csv").write_text("folder,number,species\nnumbered/a,0,cat\nnumbered/a,1,dog\nnumbered/a,2,cat\n")
    return {"paths": paths, "labels": species, "frame": frame}


def custom_dataset_holds(names: Names) -> None:
    assert (names["image"].shape[1:], names["image"].dtype) == ((3, 64, 64), torch.float32)
    assert list(names["train"].classes) == sorted(set(names["labels"])) and names["label"].dtype == torch.int64
    assert list(names["from_file"].classes) == ["cat", "dog"] and len(names["from_file"][2].image) == 3
    points = next(iter(names["points"].loader(8)))
    assert points.target.dtype == torch.float32 and points.target[3].tolist() == [1.5, 0.75]
    tags = next(iter(names["tagged"].loader(4)))
    columns = [list(names["tagged"].classes).index(tag) for tag in ("red", "green", "blue")]
    assert tags.label[:, columns].tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert tags.label.dtype == torch.float32


def own_operation_holds(names: Names) -> None:
    assert (names["image"].shape[1:], names["image"].dtype) == ((3, 64, 64), torch.float32)
    assert not (names["posterized"](np.arange(256)) & 0b00011111).any()
    assert set(next(iter(names["pairs"].loader(300))).label.tolist()) == {0, 1}


def scans() -> Names:
    """Writes eight 16-bit slices with masks, and four volumes."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for folder in ("images", "masks"):
        Path("scans", folder).mkdir(parents=True)
    for i in range(8):
        Image.fromarray(rng.integers(0, 4096, (20, 30), np.uint16)).save(f"scans/images/{i}.png")
        Image.fromarray(rng.integers(0, 3, (20, 30), np.uint8)).save(f"scans/masks/{i}.png")
    np.save("volumes.npy", rng.integers(-1000, 3000, (4, 24, 32, 32)).astype(np.int16))
    return {}


def deep_folders() -> Names:
    rng = np.random.default_rng(0)
    for folder, dtype, channels, low, high in (
        ("scans", np.uint16, 1, 0, 4096),
        ("slices", np.int16, 1, -1000, 1000),
        ("tiles", np.uint16, 5, 0, 9000),
    ):
        Path(folder, "class").mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(low, high, (520, 530, channels)).astype(dtype)
            Path(folder, "class", f"{i}.tif").write_bytes(made_tiff.tiff(pixels))
    return {"means": [4500] * 5, "stds": [2600] * 5}


def deep_images_hold(names: Names) -> None:
    assert (names["batch"].image.shape, names["batch"].image.dtype) == ((8, 1, 512, 512), torch.uint16)
    ct = names["slices"][0][0]
    assert ct.dtype == np.float32 and ct.shape == (1, 256, 256) and 0.1 < ct.mean() < 0.9
    bands = names["bands"][0][0]
    assert bands.shape == (5, 256, 256) and abs(bands.mean()) < 0.1


def medical_images_hold(names: Names) -> None:
    batch = names["batch"]
    assert (batch.images.shape, batch.images.dtype) == ((4, 1, 256, 256), torch.float32)
    assert (batch.masks.shape, batch.masks.dtype) == ((4, 256, 256), torch.uint8)
    assert 0.2 < float(((batch.images > 0) & (batch.images < 1)).float().mean()) < 0.8, "the window is within 16 bits"
    assert (names["volume"].shape, names["volume"].dtype) == ((2, 1, 16, 16, 16), torch.float32)


def volume_names() -> Names:
    """Writes three pairs of NIfTI files."""
    rng = np.random.default_rng(0)
    for folder in ("imagesTr", "labelsTr"):
        Path(folder).mkdir()
    for i in range(3):
        image = rng.integers(-1000, 1000, (40, 44 + i, 48)).astype("i2")
        for folder, values in (("imagesTr", image), ("labelsTr", (image > 900).astype("u1"))):
            Path(folder, f"{i}.nii.gz").write_bytes(gzip.compress(made_volumes.nifti(values, sform=np.eye(4))))
    return {}


def medical_volumes_hold(names: Names) -> None:
    assert len(names["loader"]) == 6
    assert (names["images"].shape, names["images"].dtype) == ((2, 1, 32, 32, 32), torch.float32)
    assert (names["labels"].shape, names["labels"].dtype) == ((2, 32, 32, 32), torch.int64)
    for size, (total, count) in names["sums"].items():
        box = tuple(slice(extent - 32) for extent in size)
        assert (count[box] > 0).all()
        means = (total / count)[box]
        assert any(np.array_equal(means.numpy(), scan.image) for scan in names["scans"])


def drop_in_names() -> Names:
    dataset = torch.utils.data.TensorDataset(torch.arange(300))
    lines = ["a line"] * 7 + ["a longer line"] * 5
    ranks = {"world_size": 2, "rank": 1}
    sets = {"dataset": dataset, "images": dataset, "train_set": dataset, "val_set": dataset}
    return {"feedline": feedline, "lines": lines, "pad": list, **sets, **ranks}


def drop_in_holds(names: Names) -> None:
    assert sorted(line for batch in names["training"] for line in batch) == sorted(names["lines"])
    assert sum(len(batch) for (batch,) in names["evaluation"]) == 150
    assert names["train"].pool is names["val"].pool is names["pool"]
    assert len(list(names["loader"])) == 5 and "settings   num_workers=0: " in names["loader"].explain()


def drop_in_state_names() -> Names:
    dataset = torch.utils.data.TensorDataset(torch.arange(300))
    return {"feedline": feedline, "dataset": dataset, "loader": feedline.DataLoader(dataset)}


def token_documents() -> Names:
    made_megatron.write(Path("books_text_document"), [range(1, 1 + n) for n in (300, 20, 9000, 0, 8000)])
    return {}


def packed_sequences_hold(names: Names) -> None:
    batch = names["batch"]
    assert batch.input_ids.shape == (3, 8192)
    assert int((batch.document_ids >= 0).sum()) == 300 + 20 + 9000 + 8000
    assert int(batch.cu_seqlens[-1]) == 3 * 8192


def speech_names() -> Names:
    rows = [{"audio_filepath": f"{i}.wav", "text": "words"} for i in range(40)]
    for i, row in enumerate(rows):
        made_audio.write_wav(Path(row["audio_filepath"]), made_audio.signal(2.5, seed=i))
    Path("train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"feedline": feedline}


def speech_holds(names: Names) -> None:
    assert {tuple(batch.audio.shape[1:]) for batch in names["crops"].loader(8)} == {(1, 8000)}
    longest = [int(batch.audio_length.max()) * len(batch.audio) for batch in names["loader"]]
    assert max(longest) <= 20 * 16000 and len(names["train"]) == 40


def hub_names() -> Names:
    """Starts a Hub with texts and captioned photos, which ends with the process."""
    import made_hub
    import pyarrow
    import pyarrow.parquet

    def parquet(first: int, rows: int) -> bytes:
        file = io.BytesIO()
        numbers = list(range(first, first + rows))
        pyarrow.parquet.write_table(pyarrow.table({"id": numbers, "text": [f"review {i}" for i in numbers]}), file)
        return file.getvalue()

    hub = made_hub.MadeHub()
    os.environ.update(HF_ENDPOINT=hub.url, HF_HOME="huggingface")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        os.environ.pop(name, None)
    files: dict[str, bytes | str] = {f"data/train-{i:05}-of-00002.parquet": parquet(10 * i, 10) for i in range(2)}
    files["data/test-00000-of-00001.parquet"] = parquet(20, 5)
    repository = hub.repository("acme/reviews", files)
    repository.branches["v1.0"] = repository.branches["main"]
    photos = sorted(Path("imagenet/train").rglob("*.jpg"))[:8]
    rows = "".join(json.dumps({"file_name": f"{i}.jpg", "caption": f"bird {i}"}) + "\n" for i in range(8))
    hub.repository(
        "acme/birds", {f"{i}.jpg": path.read_bytes() for i, path in enumerate(photos)} | {"metadata.jsonl": rows}
    )
    return {}


def hub_holds(names: Names) -> None:
    assert (len(names["train"]), len(names["some"]), len(names["test"])) == (20, 10, 5)
    assert names["state"]["dataset"]["revisions"] and names["batch"].image.shape == (4, 3, 64, 64)
    assert names["batch"].caption == [f"bird {i}" for i in range(4)] and len(names["cached"]) == 20


# the names with which a document's blocks begin, and a check after them
def cache_holds(names: Names) -> None:
    next(iter(names["train"].center_crop(8).loader(8)))
    assert list(Path("nvme/feedline").rglob("*.object"))


RUN: dict[str, tuple[Callable[[], Names], Callable[[Names], object]]] = {
    "README.md": (dict, readme_holds),
    "sampling.md": (lambda: {"feedline": feedline}, sampling_holds),
    "storage-cache.md": (lambda: {"feedline": feedline}, cache_holds),
    "audio.md": (speech_names, lambda names: len(names["batch"].audio) == 8),
    "custom-dataset.md": (custom_dataset_names, custom_dataset_holds),
    "decoded-cache.md": (lambda: {"feedline": feedline}, lambda names: next(iter(names["train"].loader(8)))),
    "detection-data.md": (dict, detection_holds),
    "drop-in.md": (drop_in_names, drop_in_holds),
    "drop-in-state.md": (drop_in_state_names, lambda names: len(list(names["loader"])) == 300),
    "fidelity.md": (lambda: {"feedline": feedline}, lambda names: next(iter(names["train"].loader(8)))),
    "extending.md": (lambda: {"feedline": feedline}, extending_holds),
    "fields.md": (dict, fields_hold),
    "files-and-tables.md": (dict, files_hold),
    "guide.md": (guide_names, guide_holds),
    "images.md": (dict, images_hold),
    "deep-images.md": (deep_folders, deep_images_hold),
    "medical-images.md": (scans, medical_images_hold),
    "medical-volumes.md": (volume_names, medical_volumes_hold),
    "mixing.md": (lambda: {"feedline": feedline}, mixing_holds),
    "own-operation.md": (dict, own_operation_holds),
    "recipes.md": (dict, recipes_hold),
    "packed-sequences.md": (token_documents, packed_sequences_hold),
    "patches.md": (dict, lambda names: len(names["loader"])),
    "remote-shards.md": (dict, remote_shards_hold),
    "datasets-on-the-hub.md": (hub_names, hub_holds),
    "reproducibility.md": (training_names, training_holds),
    "resume-on-a-cluster.md": (dict, cluster_holds),
    "speech.md": (dict, speech_holds),
    "token-files.md": (dict, token_files_hold),
    "trace.md": (lambda: small(8, epochs=2), lambda names: next(Path("profiles").glob("*.gz"))),
    "tuning-live.md": (lambda: small(32), lambda names: names["loader"].stats()["controller"]["limit"] >= 1),
    "views.md": (dict, views_hold),
}


def runnable(document: Path) -> list[str]:
    return [block for block in python_of(document) if not runs_elsewhere(document, block)]


def run(document: Path) -> None:
    assert document.name in RUN, "add an entry to RUN: the names with which its blocks begin, and a check after them"
    before, after = RUN[document.name]
    names = before()
    for block in runnable(document):
        exec(compile(block, document.name, "exec"), names)
    assert after(names) is not False


def begin_process() -> Path:
    """Returns the next document, in a separate process; the first process never returns."""
    importlib.import_module("torch._dynamo")  # optimizers import it, which takes seconds
    assert feedline.DataLoader
    gc.freeze()  # a process that ends would traverse everything that was imported
    for line in iter(sys.stdin.readline, ""):
        document, output = map(Path, line.rstrip("\n").split("\t"))
        child = os.fork()
        if child == 0:
            os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(1, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            return document
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


if __name__ == "__main__":
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else begin_process())
