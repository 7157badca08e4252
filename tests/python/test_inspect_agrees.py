# SPDX-License-Identifier: Apache-2.0
"""For sources with faults, inspect reports the same problems that readers have.

The behaviour of a reader is determined by reading: it refuses (open or a sample raises), it drops (files that it never
reads), or neither. The finding of inspect has the severity "error", "warning", or neither.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import made_data
import pytest

import feedline
from feedline import packing

JPEG = made_data.encoded(made_data.photo(1, 40, 30))
PNG = made_data.encoded(made_data.photo(2, 40, 30), "PNG")
Members = list[tuple[str, bytes]]
Source = Callable[[Path], object]


def tar(*members: tuple[str, bytes]) -> Source:
    return lambda root: made_data.write_tar(root / "x.tar", list(members))


def tars(*shards: Members) -> Source:
    def plant(root: Path) -> object:
        return [str(made_data.write_tar(root / f"{i}.tar", members)) for i, members in enumerate(shards)]

    return plant


def cut(*members: tuple[str, bytes], keep: float) -> Source:
    def plant(root: Path) -> object:
        path = made_data.write_tar(root / "x.tar", list(members))
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])
        return path

    return plant


def folder(**files: bytes) -> Source:
    """Names in which ``__`` means a slash and ``_0`` a dot."""

    def plant(root: Path) -> object:
        for name, content in files.items():
            path = root / "data" / name.replace("__", "/").replace("_0", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (root / "data").mkdir(exist_ok=True)
        return root / "data"

    return plant


def linked(root: Path) -> object:
    path = root / "x.tar"
    with tarfile.open(path, "w") as tar:
        made = made_data.write_tar(root / "y.tar", list(GOOD))
        with tarfile.open(made) as other:
            for member in other:
                tar.addfile(member, other.extractfile(member))
        link = tarfile.TarInfo("2.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "1.jpg"
        tar.addfile(link)
    made.unlink()
    return path


GOOD = (("1.jpg", JPEG), ("1.cls", b"1"))
MORE = (("2.jpg", JPEG), ("2.cls", b"0"))

# name: the fault, the behaviour of a reader, the code of the finding
PLANTED: dict[str, tuple[Source, str, str]] = {
    "a good tar": (tar(*GOOD, *MORE), "reads", ""),
    "a good folder": (folder(cat__1_0jpg=JPEG, dog__1_0png=PNG), "reads", ""),
    "images alone": (tar(("1.jpg", JPEG), ("2.jpg", JPEG)), "reads", ""),
    "a label with white space": (tar(("1.jpg", JPEG), ("1.cls", b" +7\n")), "reads", ""),
    "a label that is a word": (tar(*GOOD, ("2.jpg", JPEG), ("2.cls", b"cat")), "refuses", "not_an_integer"),
    "a label that is a fraction": (tar(("1.jpg", JPEG), ("1.cls", b"1.5")), "refuses", "not_an_integer"),
    "a label too large": (tar(("1.jpg", JPEG), ("1.cls", b"9" * 30)), "refuses", "not_an_integer"),
    "an empty label": (tar(*GOOD, ("2.jpg", JPEG), ("2.cls", b"")), "refuses", "empty_file"),
    "an empty image": (tar(*GOOD, ("2.jpg", b""), ("2.cls", b"1")), "refuses", "empty_file"),
    "no label in one": (tar(*GOOD, ("2.jpg", JPEG)), "refuses", "missing_field"),
    "no label in one shard": (tars(list(GOOD), [("2.jpg", JPEG)]), "refuses", "missing_field"),
    "no image in one": (tar(*GOOD, ("2.cls", b"1")), "refuses", "missing_field"),
    "no image at all": (tar(("1.txt", b"a"), ("1.cls", b"1")), "refuses", "no_field"),
    "an empty tar": (tar(), "refuses", "no_field"),
    "captions": (tar(*GOOD, ("1.txt", b"a cat")), "drops", "unread_member"),
    "two images in a sample": (tar(*GOOD, ("1.png", PNG)), "drops", "unread_member"),
    "two labels in a sample": (tar(*GOOD, ("1.id", b"4")), "drops", "unread_member"),
    "another image by its suffix": (tar(*GOOD, ("1.seg.png", PNG)), "drops", "unread_member"),
    "a name without a dot": (tar(*GOOD, ("README", b"x")), "drops", "member_without_dot"),
    "a sample marked as bad": (tar(*GOOD, *MORE, ("2.__bad__", b"yes")), "drops", "marked_bad"),
    "a link": (linked, "drops", "not_regular"),
    "one suffix twice": (tar(*GOOD, ("1.JPG", JPEG)), "refuses", "duplicate_suffix"),
    "a key that comes again": (tar(*GOOD, *MORE, ("1.png", PNG)), "refuses", "key_not_adjacent"),
    "a tar cut in a member": (cut(*GOOD, *MORE, keep=0.15), "refuses", "truncated_member"),
    "a tar that is text": (
        lambda root: (root / "x.tar").write_text("no tar\n" * 200) and root / "x.tar",
        "refuses",
        "",
    ),
    "an empty folder": (folder(), "refuses", "no_classes"),
    "a flat folder": (folder(**{f"{i}_0jpg": JPEG for i in range(30)}), "refuses", "no_classes"),
    "a class without images": (folder(cat__1_0jpg=JPEG, dog__1_0txt=b"x"), "refuses", "class_without_images"),
    "an empty photo": (folder(cat__1_0jpg=JPEG, cat__2_0jpg=b""), "refuses", "empty_file"),
    "a text among photos": (folder(cat__1_0jpg=JPEG, cat__1_0txt=b"x"), "drops", "unknown_extension"),
    "a photo beside the classes": (folder(cat__1_0jpg=JPEG, stray_0jpg=JPEG), "drops", "stray_file"),
}


def what_a_reader_does(source: object, root: Path) -> str:
    try:
        dataset = feedline.open(source)  # type: ignore[arg-type]
        small = dataset.resize((8, 8))
        samples = [small[i] for i in range(len(small))]
    except feedline.Error:
        return "refuses"
    labelled = len(samples[0]._fields) if dataset.format == "tar" else 1  # type: ignore[attr-defined]
    stored = 0
    for path in root.rglob("*"):
        if path.suffix == ".tar":
            with tarfile.open(path) as opened:
                stored += sum(1 for member in opened)
        elif path.is_file() and path.suffix != ".feedline-index":
            stored += 1
    return "drops" if labelled * len(samples) < stored else "reads"


@pytest.mark.parametrize("name", PLANTED)
def test_inspect_tells_what_a_reader_does(tmp_path: Path, name: str) -> None:
    plant, does, code = PLANTED[name]
    source = plant(tmp_path)
    found = feedline.inspect(source)  # type: ignore[arg-type]
    severities = {finding.severity for finding in found.findings}
    tells = "refuses" if "error" in severities else "drops" if "warning" in severities else "reads"
    assert what_a_reader_does(source, tmp_path) == does
    assert tells == does, found.findings
    assert not code or code in {finding.code for finding in found.findings}, found.findings
    ranks = [("error", "warning", "note").index(finding.severity) for finding in found.findings]
    assert ranks == sorted(ranks)


def test_a_flat_folder_is_reported_by_one_finding(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"{i}.jpg").write_bytes(JPEG)
    (finding,) = feedline.inspect(tmp_path).findings
    assert finding.code == "no_classes"
    assert 'open images without classes with fields="{key}.jpg"' in finding.text


def test_a_parent_of_class_folders_is_reported(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    made_data.make_folder(tmp_path / "data/train")
    feedline.open(tmp_path / "data/train")
    assert not recwarn.list
    for source, second in ((tmp_path / "data", False), (tmp_path / "data", True)):
        if second:
            made_data.make_folder(tmp_path / "data/val", 2)
        with pytest.warns(
            UserWarning, match=r"'train' .*contains no images itself.* become one class; .*data/train'"
        ) as said:
            dataset = feedline.open(source)
        assert len(said) == 1 and said[0].filename == __file__
        assert dataset.classes == (["train", "val"] if second else ["train"])
        (finding, *others) = feedline.inspect(source).findings
        assert (finding.code, finding.severity, len(others)) == ("merged_folders", "warning", int(second))


def test_packing_a_parent_of_class_folders_is_reported(tmp_path: Path) -> None:
    made_data.make_folder(tmp_path / "data/train", 1)
    with pytest.warns(UserWarning, match=r"^pack: the class folder 'train'") as said:
        packing.pack(tmp_path / "data", tmp_path / "out")
    assert said[0].filename == __file__


def test_what_cannot_be_read_is_reported_once(tmp_path: Path) -> None:
    (finding,) = feedline.inspect(tmp_path / "missing.tar").findings
    assert finding.code == "unreadable_file"
    for source in ("sftp://bucket/x.tar", ["a.tar", "sftp://host/b.tar"]):
        for call in (feedline.open, feedline.inspect):
            with pytest.raises(
                feedline.ConfigError, match=r"this version has no reader for .*: copy or mount the data"
            ):
                call(source)


def test_one_folder_in_a_class_is_no_mistake(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """As in tiny-imagenet."""
    for name in ("cat", "dog"):
        (tmp_path / name / "images").mkdir(parents=True)
        (tmp_path / name / "images/1.jpg").write_bytes(JPEG)
    assert feedline.open(tmp_path).classes == ["cat", "dog"]
    assert not recwarn.list
    assert feedline.inspect(tmp_path).findings == []
