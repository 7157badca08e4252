# SPDX-License-Identifier: Apache-2.0
"""Recognises streams whose order is determined by a library.

The loader's state contains the library's version, because other versions may use a different order. Libraries are
recognised by module names, so that no library needs to be imported.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import ConfigError

_log = logging.getLogger("feedline")
# Library by module name. The states of these count samples, so they are useless if the order changes.
_COUNTING = {"litdata": "litdata", "streaming": "mosaicml-streaming"}
_LIBRARIES = {**_COUNTING, "datasets": "datasets", "webdataset": "webdataset"}


def library_of(dataset: Any) -> dict[str, str]:
    """Returns a dict such as ``{"library": "litdata", "library_version": "0.2.76"}``; empty if no library determines
    the order.
    """
    for base in type(dataset).__mro__:
        module = base.__module__.partition(".")[0]
        version = getattr(sys.modules.get(module), "__version__", None) if module in _LIBRARIES else None
        if version is not None:
            return {"library": _LIBRARIES[module], "library_version": str(version)}
    return {}


def check_version(state: Mapping[str, Any], dataset: Any) -> None:
    """Compares the library version with which a state was saved to the installed version.

    Raises:
        ConfigError: the versions differ, and the library determined the order of samples that were already delivered in
            this epoch.
    """
    here, saved = library_of(dataset), state.get("library")
    if not here or not _is_within(state):
        return
    name, version = here["library"], here["library_version"]
    if saved is None:
        if name in _COUNTING.values():
            _log.warning(
                "load_state_dict: the state does not contain the version of %s that saved it. If that version "
                "was not %s, the order may differ, and samples may be repeated or lost",
                name,
                version,
            )
        return
    then = state["library_version"]
    if (saved, then) == (name, version):
        return
    if name in _COUNTING.values() or saved != name or loses_its_buffer(dataset):
        raise ConfigError(
            f"load_state_dict: the state was saved with {saved} {then}, but {name} {version} is installed. Their "
            f"orders may differ, so samples could be repeated or lost. Install {saved} {then} to finish this epoch, or "
            "load a state that was saved between two epochs. If both versions have the same order, remove 'library' "
            "from the state"
        )
    _log.warning("load_state_dict: the state was saved with %s %s, but %s is installed", name, then, version)


def _is_within(state: Mapping[str, Any]) -> bool:
    counted = state.get("counted")
    return bool(state.get("delivered")) or bool(counted and counted["samples"])


def is_of_datasets(dataset: Any) -> bool:
    """Returns whether `dataset` is a stream from Hugging Face's ``datasets``."""
    kinds = ((base.__module__, base.__name__) for base in type(dataset).__mro__)
    return ("datasets.iterable_dataset", "IterableDataset") in kinds


def loses_its_buffer(dataset: Any) -> bool:
    """Returns whether `dataset` is a stream from `datasets` whose states omit samples that the stream has already read,
    such as those in a shuffle buffer.

    ``IterableDataset.state_dict`` of ``datasets`` 5.2 documents two such cases: shuffle buffers and a batched ``map``
    of Arrow tables.
    """
    first = getattr(dataset, "_ex_iterable", None)
    if first is None or not is_of_datasets(dataset):
        return False
    steps = list(_steps(first))
    if any(type(step).__name__ == "BufferShuffledExamplesIterable" for step in steps):
        return True
    formatting = getattr(dataset, "_formatting", None)
    is_table = bool(formatting is not None and formatting.is_table)
    return any(getattr(step, "batched", False) and (is_table or _takes_tables(step)) for step in steps)


def _takes_tables(step: Any) -> bool:
    formatting = getattr(step, "formatting", None)
    return bool(formatting is not None and formatting.is_table)


def _steps(step: Any) -> Iterator[Any]:
    yield step
    inner = (value if isinstance(value, list) else [value] for value in vars(step).values())
    for one in (one for part in inner for one in part):
        if hasattr(one, "_init_state_dict"):
            yield from _steps(one)


def forget_loaded(dataset: Any) -> None:
    """Makes the next epoch start at the beginning after a state was loaded into a stream.

    ``datasets.IterableDataset`` begins every epoch from the state that was loaded last (datasets 5.2,
    ``_prepare_ex_iterable_for_iteration``), until an empty state is loaded.
    """
    if is_of_datasets(dataset):
        dataset.load_state_dict({})
