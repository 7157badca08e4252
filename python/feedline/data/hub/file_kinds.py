# SPDX-License-Identifier: Apache-2.0
"""The kind of a split's files, which is that of the most common extension, as in ``datasets``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .. import audio_formats, image_formats, videos

METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")

_EXTENSIONS = {
    "csv": "csv tsv",
    "json": "json jsonl ndjson",
    "parquet": "parquet geoparquet gpq",
    "arrow": "arrow",
    "text": "txt",
    "conll": "conll conllu",
    "webdataset": "tar",
    "xml": "xml",
    "hdf5": "hdf5 h5",
    "eval": "eval",
    "harbor": "toml md",
    "lance": "lance",
    "tsfile": "tsfile",
    "vortex": "vortex",
    "fasta": "fa fasta fna ffn faa frn afa",
    "genbank": "gb gbk genbank",
    "fastq": "fq fastq",
    "pdb": "pdb ent",
    "mmcif": "cif mmcif",
    "video": "mpeg avi mp4 mov mkv",
    "mesh": "glb gltf ply stl",
    "pdf": "pdf",
    "nifti": "nii",
    "zip": "zip",
}
_KINDS = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}
for _extension in audio_formats.EXTENSIONS:
    _KINDS.setdefault(_extension, "audio")
for _extension in image_formats.EXTENSIONS:
    _KINDS.setdefault(_extension, "image")
# the order of extensions that are equally common; others follow by name
_FIRST = ("parquet", "lance", "vortex", "arrow", "jsonl", "json", "csv")
FOLDERS = ("image", "audio", "video")  # kinds with one file per sample, possibly described by METADATA


def _suffixes(path: str) -> list[str]:
    return path.rpartition("/")[2].lower().split(".")[1:]


def known(paths: Iterable[str]) -> list[str]:
    """Returns the files that may be data, by their extensions."""
    return [path for path in paths if any(suffix in _KINDS or videos.is_video(suffix) for suffix in _suffixes(path))]


def kind_of(paths: Sequence[str]) -> str:
    """Returns the kind of the files; empty if there is none."""
    counts = Counter((path.rpartition("/")[2] not in METADATA, suffix) for path in paths for suffix in _suffixes(path))

    def rank(one: tuple[bool, str]) -> tuple[bool, int, tuple[bool, ...], str]:
        is_data, suffix = one
        return (is_data, counts[one], tuple(suffix == first for first in _FIRST), suffix)

    for _, suffix in sorted(counts, key=rank, reverse=True):
        if suffix in _KINDS:
            return _KINDS[suffix]
    return ""


def of_kind(paths: Iterable[str], kind: str) -> list[str]:
    """Returns the files of a kind, without metadata. A compression suffix may follow the extension."""
    return [
        path
        for path in paths
        if not (kind in FOLDERS and path.rpartition("/")[2] in METADATA)
        and any(_KINDS.get(suffix) == kind for suffix in _suffixes(path)[-2:])
    ]
