# SPDX-License-Identifier: Apache-2.0
"""Labels and other values of all samples: :attr:`Dataset.labels`, :meth:`Dataset.targets`."""

from __future__ import annotations

import functools
from typing import Any

from ... import _engine
from ..._engine import Dataset as EngineDataset
from ...errors import ConfigError
from . import stored_values

# Names of the field with a sample's class, in order of preference.
LABEL_NAMES = ("label", "labels", "cls", "target", "targets", "y")


class Labels:
    """The methods of :class:`Dataset` that return one field for all samples."""

    _engine: EngineDataset

    @functools.cached_property
    def labels(self) -> Any:
        """The class number of every sample, as an int64 NumPy array of shape (samples,).

        For annotations of objects (COCO, Pascal VOC, YOLO), a list with one int64 array of shape (objects,) per sample.
        The field is the first of ``label``, ``labels``, ``cls``, ``target``, ``targets`` and ``y`` that the dataset
        has. See :meth:`targets` for the cost. Do not write to the arrays.

        Raises:
            ConfigError: there is no such field, or its values are not integers.
            DataError, StorageError: a sample cannot be read.
        """
        labels = self.targets(label_field("labels", self._engine, "pass the name of a field to targets()"))
        if not _are_integers(labels):
            raise ConfigError("labels: the labels are not one integer per sample; targets() returns them unchanged")
        return labels

    def targets(self, field: str) -> Any:
        """Returns a field of every sample, in the dataset's order, without decoding images.

        The format determines which data are read:

        - nothing is read for class folders, COCO files, tables, :func:`feedline.files` and :func:`feedline.table`, nor
          for integers (``.cls``) of tar files and for single numbers of Arrow files, which are read
          when the dataset is opened;
        - only this field is read from Parquet files, from other members of tar files and other columns of Arrow files,
          from local, uncompressed MDS and LitData shards, and from the annotation files of Pascal VOC and YOLO;
        - whole samples, with their images, for TFRecord, LMDB, pixel files, and MDS and LitData shards that are remote
          or compressed. This takes as long as an epoch without decoding and with one thread.

        Args:
            field: the name of a field with integers, text or arrays of numbers.

        Returns:
            A NumPy array with one row per sample, int64 for integers; a list of str for text; a list of NumPy arrays if
            the samples' shapes differ, and always for ``boxes``, ``keypoints`` and numbers per object.

        Raises:
            ConfigError: there is no such field, it has another kind, or a sample has no value.
            DataError, StorageError: a sample cannot be read.
        """
        if not isinstance(field, str):
            raise ConfigError(f"targets: field must be the name of one field, not {field!r}")
        stored_values.require_field(self._engine, "targets", field)
        return _engine.field_values(self._engine, field)

    def class_counts(self) -> dict[str, int]:
        """Returns the number of samples in each class, ordered by class number.

        For annotations of objects, the number of objects. The keys are the names in :attr:`Dataset.classes`, including
        classes without a sample; if the dataset has no class names, the keys are the numbers that occur, as text.

        Raises:
            ConfigError: as for :attr:`labels`, or a label has no class name.
            DataError, StorageError: a sample cannot be read.
        """
        import numpy

        names = list(self._engine.classes)
        labels = self.labels
        numbers = numpy.concatenate(labels) if isinstance(labels, list) else labels
        if not names:
            found, counts = numpy.unique(numbers, return_counts=True)
            return {str(number): count for number, count in zip(found.tolist(), counts.tolist(), strict=True)}
        wrong = (numbers < 0) | (numbers >= len(names))
        if wrong.any():
            ends = (
                numpy.cumsum([len(one) for one in labels])
                if isinstance(labels, list)
                else numpy.arange(1, len(labels) + 1)
            )
            at = int(wrong.argmax())
            sample = int(numpy.searchsorted(ends, at, "right"))
            raise ConfigError(
                f"class_counts: sample {sample} has the label {numbers[at]}, but the dataset has {len(names)} classes, "
                f"numbered from 0; count labels without names with numpy.unique(dataset.labels, return_counts=True)"
            )
        return dict(zip(names, numpy.bincount(numbers, minlength=len(names)).tolist(), strict=True))


def _are_integers(labels: Any) -> bool:
    import numpy

    def fits(value: Any) -> bool:
        return isinstance(value, numpy.ndarray) and value.dtype == numpy.int64 and value.ndim == 1

    return all(map(fits, labels)) if isinstance(labels, list) else fits(labels)


def label_field(where: str, engine: EngineDataset, advice: str) -> str:
    """Returns the name of the field that contains each sample's class."""
    names = [name for name, *_ in engine.roles()]
    for name in LABEL_NAMES:
        if name in names:
            return name
    raise ConfigError(
        f"{where}: no field is called {', '.join(LABEL_NAMES)}; the fields are {', '.join(names)}; {advice}"
    )
