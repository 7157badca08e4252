# SPDX-License-Identifier: Apache-2.0
"""Labels and other values of all samples: :attr:`Dataset.labels`, :meth:`Dataset.targets`."""

from __future__ import annotations

import functools
from typing import Any

from .. import _engine
from .._engine import Dataset as EngineDataset
from ..errors import ConfigError

# Names of the field with a sample's class, in order of preference.
LABEL_NAMES = ("label", "labels", "cls", "target", "targets", "y")


class Labels:
    """The methods of :class:`Dataset` that return a field of all samples."""

    _engine: EngineDataset

    @functools.cached_property
    def labels(self) -> Any:
        """The class number of every sample, as a NumPy array of int64, shape (samples,).

        The field is the first of ``label``, ``labels``, ``cls``, ``target``, ``targets`` and ``y`` that the dataset
        has. Nothing is decoded. Folders of classes, tables, :func:`feedline.files` and :func:`feedline.table` know
        their labels; in other formats each stored sample is read once, at the first use. Do not write to the array.

        Raises:
            ConfigError: there is no such field, or its values are not integers.
            DataError, StorageError: a sample cannot be read.
        """
        import numpy

        labels = self.targets(label_field("labels", self._engine, "pass the name of a field to targets()"))
        if getattr(labels, "dtype", None) != numpy.int64 or labels.ndim != 1:
            raise ConfigError("labels: the labels are not one integer per sample; targets() returns them as they are")
        return labels

    def targets(self, field: str) -> Any:
        """Returns a field of every sample, in the dataset's order, without decoding anything.

        Args:
            field: the name of a field of integers or text; in tables, :func:`feedline.files` and
                :func:`feedline.table` also of other numbers.

        Returns:
            A NumPy array with one row per sample, int64 for integers; a list of str for text.

        Raises:
            ConfigError: there is no such field, or its values are in files, or of different shapes.
            DataError, StorageError: a sample cannot be read.
        """
        if not isinstance(field, str):
            raise ConfigError(f"targets: field must be the name of one field, not {field!r}")
        return _engine.field_values(self._engine, field)

    def class_counts(self) -> dict[str, int]:
        """Returns the number of samples of each class, in the order of the class numbers.

        The keys are the names in :attr:`Dataset.classes`, including classes without a sample; if the dataset has no
        class names, the keys are the numbers that occur, as text. Raises the errors of :attr:`labels`.
        """
        import numpy

        names = list(self._engine.classes)
        if names:
            counts = numpy.bincount(self.labels, minlength=len(names)).tolist()
            return dict(zip(names, counts, strict=True))
        numbers, found = numpy.unique(self.labels, return_counts=True)
        return {str(number): count for number, count in zip(numbers.tolist(), found.tolist(), strict=True)}


def label_field(where: str, engine: EngineDataset, advice: str) -> str:
    """Returns the name of the field with the class of a sample."""
    names = [name for name, *_ in engine.roles()]
    for name in LABEL_NAMES:
        if name in names:
            return name
    raise ConfigError(
        f"{where}: no field is called {', '.join(LABEL_NAMES)}; the fields are {', '.join(names)}; {advice}"
    )
