# SPDX-License-Identifier: Apache-2.0
"""Converts a loader's state between its saved JSON form and the engine's.

Version 2 contains the position in the epoch's order, which is the same on every rank. Version 3 is version 2 with an
order of row groups or record batches, which earlier versions of Feedline do not have. Version 1 contained the number of
batches on one rank. States of all versions can be loaded. docs/versions.md documents the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import ConfigError, Error
from ..version import from_the_future, installed_version

VERSION = 3  # the latest
_WHERE = "load_state_dict"
_EXACT = "exact"  # the only pixel version before states recorded it


def from_engine(state: Mapping[str, Any], revisions: Sequence[str] = ()) -> dict[str, Any]:
    """Converts the engine's state to a ``state_dict()``. `revisions`: commits of datasets on the Hugging Face Hub."""
    dataset = dict(state["dataset"])
    # samples that are not every sample once, and weights of a mixture that set_weights() has changed
    sampling = {"sampling": f"{state['sampling']:016x}"} if state["sampling"] else {}
    mix = {"mix": dict(state["mix"])} if state["mix"] is not None else {}
    packing = {"packing": dict(state["packing"])} if state["packing"] is not None else {}
    if not dataset["blocks"]:
        del dataset["blocks"]
    if revisions:
        dataset["revisions"] = list(revisions)
    return {
        "version": 3 if "blocks" in dataset else 2,
        "feedline": installed_version(),  # for messages
        "fingerprint": f"{dataset.pop('fingerprint'):016x}",
        "dataset": dataset,
        "plan": {
            "shuffle": state["shuffle"],
            "shard_window": state["shard_window"],
            "buckets": [list(bucket) for bucket in state["buckets"]],  # bound, rows over all ranks
            "repeat": state["repeat"],
            "fidelity": state["fidelity"],  # pixel version
            **sampling,
        },
        **mix,
        **packing,
        "seed": state["seed"],
        "epoch": state["epoch"],
        "position": state["position"],
        "delivered": [list(span) for span in state["delivered"]],
        "left_out": state["left_out"],
    }


@contextmanager
def errors_of(call: str) -> Iterator[None]:
    """Begins the errors about a state with the name of the `call` that was given the state."""
    try:
        yield
    except Error as error:
        error.message = error.message.replace("load_state_dict:", f"{call}:", 1)
        raise


def check_revisions(state: Mapping[str, Any], now: Sequence[str]) -> None:
    """Raises ConfigError if a state was saved with other commits of datasets on the Hugging Face Hub."""
    dataset = state.get("dataset")
    saved = dataset.get("revisions", []) if isinstance(dataset, Mapping) else []
    if not saved or not now or list(saved) == list(now):
        return
    raise ConfigError(
        f"{_WHERE}: the state was saved with another commit of a dataset on the Hugging Face Hub: "
        f"{', '.join(sorted(set(saved) - set(now)))}, but the loader reads {', '.join(sorted(set(now) - set(saved)))}; "
        "to resume, open the saved commit by the name ORG/NAME@COMMIT"
    )


def to_engine(state: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a ``state_dict()`` of any version to the engine's state.

    Args:
        state: the saved state.
        now: the engine's own state, for the current dataset.

    Raises:
        ConfigError: `state` is not a loader's state, or is damaged.
    """
    version = state.get("version") if isinstance(state, Mapping) else None
    if type(version) is int and version > VERSION:
        readable = f"states of versions 1 to {VERSION}"
        raise ConfigError(f"{_WHERE}: {from_the_future('this state', version, state.get('feedline'), readable)}")
    readers = {1: _from_version_1, 2: _from_version_2, 3: _from_version_2}
    if isinstance(version, bool) or not isinstance(version, int) or version not in readers:
        raise ConfigError(f"{_WHERE}: this is not a loader's state of version 1 to {VERSION}: {state!r:.200}")
    try:
        return readers[version](state, now)
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{_WHERE}: the state is damaged ({error!r}): {dict(state)!r:.200}") from None


def _from_version_2(state: Mapping[str, Any], _now: Mapping[str, Any]) -> dict[str, Any]:
    dataset, plan = state["dataset"], state["plan"]
    return {
        "dataset": {
            "fingerprint": _count(int(state["fingerprint"], 16)),
            "format": _text(dataset["format"]),
            "samples": _count(dataset["samples"]),
            "shards": _count(dataset["shards"]),
            "fields": [_text(field) for field in dataset["fields"]],
            "blocks": _count(dataset.get("blocks", 0)),
        },
        "seed": _count(state["seed"]),
        "shuffle": _flag(plan["shuffle"]),
        "shard_window": _count(plan["shard_window"]),
        "epoch": _count(state["epoch"]),
        "position": _count(state["position"]),
        "delivered": [(_count(begin), _count(end)) for begin, end in state["delivered"]],
        "left_out": _count(state["left_out"]),
        "buckets": [(_count(bound), _count(rows)) for bound, rows in plan.get("buckets", [])],
        "repeat": _count(plan.get("repeat", 1)),
        "sampling": _count(int(plan.get("sampling", "0"), 16)),
        "mix": _mix(state["mix"]) if "mix" in state else None,
        "fidelity": _text(plan.get("fidelity", _EXACT)),
        "packing": _packing(state["packing"]) if "packing" in state else None,
    }


def _from_version_1(state: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    samples = now["dataset"]["samples"]
    batch_size, world_size = _count(state["batch_size"]), _count(state["world_size"])
    ahead = [_count(batch) for batch in state["ahead"]]
    if ahead and world_size != 1:
        raise ConfigError(
            f"{_WHERE}: this state of version 1 contains batches delivered out of order by one of {world_size} ranks, "
            "but not those of the other ranks; use a state that was saved with in_order=True"
        )

    def position(batch: int) -> int:
        return min(batch * batch_size * world_size, samples)

    return {
        "dataset": {
            "fingerprint": _count(int(state["fingerprint"], 16)),
            "format": "",  # not recorded
            "samples": 0,
            "shards": 0,
            "fields": [],
            "blocks": 0,
        },
        "seed": _count(state["seed"]),
        "shuffle": _flag(state["shuffle"]),
        "shard_window": 0,
        "epoch": _count(state["epoch"]),
        "position": position(_count(state["batch"])),
        "delivered": [(position(batch), position(batch + 1)) for batch in ahead],
        "left_out": _count(state["refilled"]),
        "buckets": [],
        "repeat": 1,
        "sampling": 0,
        "mix": None,
        "fidelity": _EXACT,
        "packing": None,
    }


def _mix(mix: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "weights": [float(weight) for weight in mix["weights"]],
        "since": _count(mix["since"]),
        "used": [_count(used) for used in mix["used"]],
    }


def _packing(packing: Mapping[str, Any]) -> dict[str, Any]:
    return {"window": _count(packing["window"]), "pack": _count(packing["pack"])}


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise ValueError(f"{value!r} is not a count")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a bool")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
