# SPDX-License-Identifier: Apache-2.0
"""Labels and other values of all samples: :attr:`Dataset.labels`, :meth:`Dataset.targets`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ... import _engine
from ..._engine import Dataset as EngineDataset
from ...errors import ConfigError
from . import stored_values

if TYPE_CHECKING:
    from ..memory.table_values import TableValues

# Names of the field with a sample's class, in order of preference.
LABEL_NAMES = ("label", "labels", "cls", "target", "targets", "y")


class Labels:
    """The methods of :class:`Dataset` that return one field for all samples."""

    _engine: EngineDataset
    _table: TableValues | None

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
        """Returns a field of every sample, in the dataset's order, without decoding images; for
        :func:`feedline.files` and :func:`feedline.table`, also a column that is not a field.

        The format determines which data are read:

        - nothing is read for class folders, COCO files, tables, :func:`feedline.files` and :func:`feedline.table`, nor
          for integers (``.cls``) of tar files and for single numbers of Arrow files, which are read
          when the dataset is opened;
        - only this field is read from Parquet files, from other members of tar files and other columns of Arrow files,
          from local, uncompressed MDS and LitData shards, and from the annotation files of Pascal VOC and YOLO;
        - whole samples, with their images, for TFRecord, LMDB, pixel files, and MDS and LitData shards that are remote
          or compressed. This takes as long as an epoch without decoding and with one thread.

        Args:
            field: the name of a field with integers, text, JSON or arrays of numbers, or of a column with numbers or
                text.

        Returns:
            A NumPy array with one row per sample, int64 for integers; a list of str for text; a list of parsed values
            for JSON, as in :meth:`filter`; a list of NumPy arrays if the samples' shapes differ, and always for
            ``boxes``, ``keypoints`` and numbers per object.

        Raises:
            ConfigError: there is no such field, it has another kind, or a sample has no value.
            DataError, StorageError: a sample cannot be read, or its JSON is invalid.
        """
        if not isinstance(field, str):
            raise ConfigError(f"targets: field must be the name of one field, not {field!r}")
        if stored_values.is_column(self._engine, self._table, field):
            assert self._table is not None
            return self._table.array("targets", self._engine, field)
        stored_values.require_field(self._engine, "targets", field)
        if (field, "json") in ((name, kind) for name, kind, *_ in self._engine.roles()):
            return stored_values.json_values(self._engine, "targets", field)
        return _engine.field_values(self._engine, field)

    def class_counts(self) -> dict[str, int]:
        """Returns the number of samples in each class, ordered by class number.

        For annotations of objects, the number of objects; for tags (``multi_label``), the number of samples with each
        tag. The keys are the names in :attr:`Dataset.classes`, including
        classes without a sample; if the dataset has no class names, the keys are the numbers that occur, as text.

        Raises:
            ConfigError: as for :attr:`labels`, or a label has no class name.
            DataError, StorageError: a sample cannot be read.
        """
        import numpy

        names = list(self._engine.classes)
        tags = self._tags(len(names))
        if tags is not None:
            return dict(zip(names, (tags > 0).sum(axis=0).tolist(), strict=True))
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

    def _tags(self, classes: int) -> Any:
        """Returns the tags of every sample, shape (samples, classes); None if the labels are not tags."""
        values = self.targets(label_field("class_counts", self._engine, "add the labels to fields="))
        is_tags = getattr(values, "dtype", None) == "float32" and values.ndim == 2 and values.shape[1] == classes
        return values if is_tags else None


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
