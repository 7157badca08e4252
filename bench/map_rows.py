# SPDX-License-Identifier: Apache-2.0
"""The data and loaders of the workloads of `tools/bench --map`. `map.py` runs each row in a process:

    python bench/map_rows.py ROW feedline|stock FOLDER

FOLDER contains the data of all rows, written by `write_data()`. Prints the rate and the CPU time as JSON.
"""

from __future__ import annotations

import argparse
import json
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import recipe_clock

WORKERS = 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Loaders = Callable[[Path], tuple[Iterable[Any], int]]  # a loader, and the number of samples per epoch


@dataclass(frozen=True)
class Row:
    title: str
    ours: Loaders
    stock: Loaders | None = None


ROWS: dict[str, Row] = {}

# ---- data


def write_data(folder: Path, images: int, rows: int) -> None:
    """Writes the data of all rows: `images` photos in each format, and tables of `rows` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    photos = [encoded(rng, 500, 375, "JPEG") for _ in range(images)]
    tar = [(f"{i:05}.jpg", photo) for i, photo in enumerate(photos)]
    write_folder(folder / "photos", photos, "jpg")
    write_folder(folder / "large", [encoded(rng, 1920, 1280, "JPEG") for _ in range(images // 4)], "jpg")
    write_folder(folder / "png", [encoded(rng, 500, 375, "PNG") for _ in range(images // 4)], "png")
    write_folder(folder / "webp", [encoded(rng, 500, 375, "WEBP") for _ in range(images)], "webp")
    write_tar(folder / "photos.tar", [*tar, *((f"{i:05}.cls", b"%d" % (i % 10)) for i in range(images))])
    write_tar(folder / "pairs.tar", [*tar, *((f"{i:05}.txt", b"a photo of number %d" % i) for i in range(images))])
    write_tar(folder / "masks.tar", [*tar, *((f"{i:05}.png", mask(rng, 500, 375)) for i in range(images))])
    boxes = [(f"{i:05}.boxes.npy", npy(drawn_boxes(rng))) for i in range(images)]
    write_tar(folder / "boxes.tar", [*tar, *boxes])

    table = pa.table({"image": photos, "label": np.arange(images) % 10})
    pq.write_table(table, folder / "groups.parquet", row_group_size=100)  # as pyarrow and `datasets` 4.0 write it
    pq.write_table(table, folder / "zstd.parquet", compression="zstd", use_dictionary=False)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(folder / "zstd.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as out,
    ):
        out.write_table(table, max_chunksize=1000)
    small = pa.table({"image": [encoded(rng, 32, 32, "PNG") for _ in range(4 * images)], "label": range(4 * images)})
    pq.write_table(small, folder / "small.parquet")
    texts = [f"{i} " + "word " * int(n) for i, n in enumerate(rng.integers(5, 200, rows // 10))]
    labels = np.arange(len(texts)) % 10
    pq.write_table(pa.table({"text": texts, "label": labels}), folder / "text.parquet")
    lines = (json.dumps({"text": text, "label": int(label)}) for text, label in zip(texts, labels, strict=True))
    (folder / "text.jsonl").write_text("\n".join(lines) + "\n")
    numbers = rng.standard_normal((rows, 32), dtype=np.float32)
    np.save(folder / "numbers.npy", numbers)
    columns = {f"c{i}": numbers[:, i] for i in range(32)} | {"label": np.arange(rows) % 10}
    pq.write_table(pa.table(columns), folder / "columns.parquet")


def encoded(rng: np.random.Generator, width: int, height: int, kind: str) -> bytes:
    """Returns an image file with smooth areas, edges and noise, about as large as a photo."""
    from PIL import Image

    coarse = Image.fromarray(rng.integers(0, 256, (max(height // 40, 2), max(width // 40, 2), 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    pixels += rng.integers(-12, 13, pixels.shape, dtype=np.int16)
    stream = BytesIO()
    options = {"quality": 85} if kind != "PNG" else {"compress_level": 3}
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, kind, **options)
    return stream.getvalue()


def mask(rng: np.random.Generator, width: int, height: int) -> bytes:
    from PIL import Image

    image = Image.fromarray(rng.integers(0, 21, (height // 25, width // 25), dtype=np.uint8)).resize((width, height), 0)
    image.putpalette(rng.integers(0, 256, 768, dtype=np.uint8).tobytes())
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def drawn_boxes(rng: np.random.Generator) -> Any:
    return np.sort(rng.uniform(0, 375, (int(rng.integers(1, 20)), 2, 2)), axis=1).reshape(-1, 4).astype(np.float32)


def npy(values: Any) -> bytes:
    stream = BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def write_folder(folder: Path, files: list[bytes], extension: str) -> None:
    for i, data in enumerate(files):
        class_folder = folder / f"class_{i % 10}"
        class_folder.mkdir(parents=True, exist_ok=True)
        (class_folder / f"{i:05}.{extension}").write_bytes(data)


def write_tar(path: Path, files: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, BytesIO(data))


# ---- loaders


def native(name: str, change: Callable[[Any], Any], batch: int = 64, fields: Any = None, **options: Any) -> Loaders:
    """Returns Feedline's loader of a source, with the operations that `change` adds."""

    def made(folder: Path) -> tuple[Iterable[Any], int]:
        import feedline

        dataset = change(feedline.open(folder / name, fields=fields))
        return dataset.loader(batch, **{"shuffle": True, "num_workers": WORKERS} | options), len(dataset)

    return made


def drop_in(dataset_of: Callable[[Path], Any], feedlines: bool, batch: int = 64, **options: Any) -> Loaders:
    """Returns torch's loader of a torch dataset, or Feedline's with the same arguments."""

    def made(folder: Path) -> tuple[Iterable[Any], int]:
        import torch

        import feedline

        torch.set_num_threads(1)
        dataset = dataset_of(folder)
        kind: Any = feedline.DataLoader if feedlines else torch.utils.data.DataLoader
        loader: Iterable[Any] = kind(
            dataset, batch, shuffle=True, num_workers=WORKERS, persistent_workers=True, **options
        )
        return loader, len(dataset)

    return made


def photos(folder: str, *steps: str) -> Callable[[Path], Any]:
    """torchvision's ImageFolder with the transforms that `steps` construct."""

    def made(root: Path) -> Any:
        import torch
        from torchvision import datasets, transforms

        names = {**vars(transforms), "torch": torch, "bicubic": transforms.InterpolationMode.BICUBIC}
        end = [transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
        return datasets.ImageFolder(root / folder, transforms.Compose([eval(step, names) for step in steps] + end))

    return made


def own_class(root: Path) -> Any:
    from drop_in_sets import own_photos

    return own_photos(str(root / "photos"))


class NumberRows:
    """Rows of a memory-mapped array, with labels."""

    def __init__(self, root: Path) -> None:
        self.rows = np.load(root / "numbers.npy", mmap_mode="r")[:100_000]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index].copy(), index % 10


class Tokens:
    """Dicts of token lists of different lengths."""

    def __init__(self, root: Path) -> None:
        rng = np.random.default_rng(0)
        self.rows = [rng.integers(0, 1000, n).tolist() for n in rng.integers(10, 200, 20_000)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.rows[index], "attention_mask": [1] * len(self.rows[index])}


def padded(samples: list[dict[str, Any]]) -> dict[str, Any]:
    import torch

    longest = max(len(sample["input_ids"]) for sample in samples)
    return {
        name: torch.tensor([sample[name] + [0] * (longest - len(sample[name])) for sample in samples])
        for name in samples[0]
    }


class ArrowRows:
    """Rows of a table, one Python object per cell."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.table = pq.read_table(path)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: self.table[name][index].as_py() for name in self.table.column_names}


def tensors(folder: Path) -> tuple[Iterable[Any], int]:
    """Batches of the numbers as a tensor in memory, without a loader."""
    import torch

    numbers = torch.from_numpy(np.load(folder / "numbers.npy"))

    class Shuffled:
        def __iter__(self) -> Any:
            return (numbers[rows] for rows in torch.randperm(len(numbers)).split(1024))

    return Shuffled(), len(numbers)


def train(size: int) -> Callable[[Any], Any]:
    return lambda dataset: dataset.random_resized_crop(size).random_horizontal_flip().normalize(MEAN, STD)


def unchanged(dataset: Any) -> Any:
    return dataset


CROP = ("RandomResizedCrop(224)", "RandomHorizontalFlip()")
ROWS |= {
    "photos": Row(
        "photos 500x375, crop 224, flip", native("photos", train(224)), drop_in(photos("photos", *CROP), False)
    ),
    "large": Row("photos 1,920x1,280, the same", native("large", train(224)), drop_in(photos("large", *CROP), False)),
    "vit": Row(
        "Resize 384 bicubic, CenterCrop",
        native("photos", lambda d: d.resize(384, interpolation="bicubic").center_crop(384).normalize(MEAN, STD)),
        drop_in(photos("photos", "Resize(384, interpolation=bicubic)", "CenterCrop(384)"), False),
    ),
    "augment": Row(
        "TrivialAugmentWide, 176",
        native(
            "photos",
            lambda d: d.random_resized_crop(176).random_horizontal_flip().trivial_augment_wide().normalize(MEAN, STD),
        ),
        drop_in(photos("photos", "RandomResizedCrop(176)", CROP[1], "TrivialAugmentWide()"), False),
    ),
    "pairs": Row("CLIP pairs in a tar", native("pairs.tar", train(224), fields=("jpg", "txt"))),
    "segmentation": Row("JPEG and palette mask, 224", native("masks.tar", train(224), fields=("jpg", "png:mask"))),
    "detection": Row(
        "boxes, shorter side 480, lists",
        native(
            "boxes.tar",
            lambda d: d.resize(480, max_size=800).random_horizontal_flip().normalize(MEAN, STD).collate("list"),
            batch=8,
            fields=("jpg", "boxes.npy:boxes"),
        ),
    ),
    "png": Row("PNG photos", native("png", train(224)), drop_in(photos("png", *CROP), False)),
    "webp": Row("WebP photos", native("webp", train(224)), drop_in(photos("webp", *CROP), False)),
    "small": Row(
        "32x32 PNGs in Parquet",
        native(
            "small.parquet",
            lambda d: d.random_crop(32, padding=4).random_horizontal_flip().normalize(MEAN, STD),
            batch=256,
        ),
    ),
    "own_class": Row("a user's dataset class, drop-in", drop_in(own_class, True), drop_in(own_class, False)),
    "number_rows": Row("NumPy rows in a class, drop-in", drop_in(NumberRows, True), drop_in(NumberRows, False)),
    "tokens": Row(
        "token dicts and a padding collate function, drop-in",
        drop_in(Tokens, True, collate_fn=padded),
        drop_in(Tokens, False, collate_fn=padded),
    ),
    "text": Row(
        "text Parquet, shuffled",
        native("text.parquet", unchanged, batch=256),
        drop_in(lambda root: ArrowRows(root / "text.parquet"), False, 256),
    ),
    "tar": Row("photos in a tar, shuffled", native("photos.tar", train(224))),
    "groups": Row("Parquet, groups of 100, dictionary, shuffled", native("groups.parquet", train(224))),
    "groups_in_order": Row("the same, in order", native("groups.parquet", train(224), shuffle=False)),
    "group_windows": Row(
        "the same, windows of 4 groups", native("groups.parquet", train(224), shuffle="shards", shuffle_window=4)
    ),
    "zstd_group": Row("Parquet, one zstd group, shuffled", native("zstd.parquet", train(224))),
    "zstd_arrow": Row("Arrow with zstd, shuffled", native("zstd.arrow", train(224))),
    "columns": Row("32 float columns and a label, shuffled", native("columns.parquet", unchanged, 1024), tensors),
    "jsonl": Row("JSONL of text and label, shuffled", native("text.jsonl", unchanged, batch=256)),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("row", choices=list(ROWS))
    parser.add_argument("way", choices=("feedline", "stock"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    row = ROWS[given.row]
    loaders = row.ours if given.way == "feedline" else row.stock
    assert loaders is not None
    recipe_clock.print_timed(*loaders(given.folder))


if __name__ == "__main__":
    main()
