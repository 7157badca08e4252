# SPDX-License-Identifier: Apache-2.0
"""Random arguments, valid and not: torch's loader and ours must do the same.

FEEDLINE_FUZZ_CASES sets how many (2,000), FEEDLINE_FUZZ_SEED where they begin. A failure prints its case's number and
arguments; FEEDLINE_FUZZ_SEED=<number> FEEDLINE_FUZZ_CASES=1 repeats it.
"""

from __future__ import annotations

import collections
import inspect
import os
import random
import re
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from fuzz_cases import (
    ORDER_MATTERS,
    SAMPLES,
    Stage,
    StagedMap,
    StagedOrder,
    StagedStream,
    cannot_start,
    make_arguments,
    make_dataset,
)
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import IterableDataset

from feedline import DataLoader
from feedline.torch_loader.lowering.plan import plan_lowering
from feedline.torch_loader.native.plans import ArrayPlan
from feedline.torch_loader.options.settings import Settings

CASES = int(os.environ.get("FEEDLINE_FUZZ_CASES", "2000"))
FIRST = int(os.environ.get("FEEDLINE_FUZZ_SEED", "0"))
FRESH, STAGED = 0.08, 0.38  # shares of cases with separate workers, which are slow, and with persistent workers
ATTRIBUTES = (
    "batch_size", "num_workers", "drop_last", "timeout", "prefetch_factor", "persistent_workers", "pin_memory",
    "worker_init_fn", "pin_memory_device", "_auto_collation", "_dataset_kind", "_IterableDataset_len_called",
)  # fmt: skip
KNOWS_IN_ORDER = "in_order" in inspect.signature(TorchLoader.__init__).parameters
QUIET = tuple(kind for kind in SAMPLES if kind not in ORDER_MATTERS)


def plain(value):
    """Returns a value that can be compared with ==, and distinguishes types."""
    if isinstance(value, torch.Tensor):
        values = repr(value.tolist())  # NaN equals itself
        strides = torch.empty_like(value).stride()  # its own memory; for a tensor with gaps, that of Feedline's copy
        return "tensor", str(value.dtype), tuple(value.shape), strides, value.requires_grad, values
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, repr(value.tolist())
    if isinstance(value, dict):
        return type(value).__name__, [(key, plain(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    if type(value) is object:
        return "object"
    return type(value).__name__, repr(value)


def words(error):
    """Returns type and message; for an error from a worker, its first line and the original's own."""
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    text = text.replace("Trying to resize storage that is not resizable", "stack expects each tensor to be equal size")
    text = re.sub("(stack expects each tensor to be equal size).*", r"\1", text)  # torch names it only without workers
    first, _, rest = text.partition("\nOriginal Traceback")
    original = re.findall(r"^\w*(?:Error|Exception|Iteration)\b.*$", rest, re.MULTILINE)
    return type(error).__name__, first, original[-1:]


class Scenario(NamedTuple):
    """How a loader is used."""

    ordered: bool = True  # otherwise, its batches may come in any order
    epochs: int = 2
    stop_after: int | None = None  # batches of the first epoch; the rest is abandoned
    interleaved: bool = False  # a second iterator at the same time


def one_batch(iterator, ordered):
    try:
        return plain(next(iterator))
    except StopIteration:
        return None
    except Exception as error:
        said = words(error)
        return said if ordered else re.sub(r"process \d+", "process", repr(said))


def epoch(loader, scenario, stop_after):
    """Returns up to 60 batches and errors of an epoch."""
    iterator = iter(loader)
    other = iter(loader) if scenario.interleaved else None
    seen: list[Any] = []
    while len(seen) < (60 if stop_after is None else stop_after):
        batch = one_batch(iterator, scenario.ordered)
        if batch is None:
            break
        seen.append(batch)
        if other is not None:
            seen.append(("other", one_batch(other, True)))
    return seen if scenario.ordered else sorted(seen, key=repr)


def about(loader):
    """Returns the attributes of a loader."""
    told = [(name, getattr(loader, name)) for name in ATTRIBUTES]
    told += [(name, type(getattr(loader, name)).__name__) for name in ("sampler", "batch_sampler", "_index_sampler")]
    for ask in (len, lambda loader: len(iter(loader)), lambda loader: setattr(loader, "batch_size", 7)):
        if ask is len or loader.num_workers == 0:
            try:
                told.append(("answer", ask(loader)))
            except Exception as error:
                told.append(("answer", words(error)))
    return told


def randomness():
    return "random", torch.get_rng_state().sum().item(), random.random(), np.random.rand()


def seed_all():
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)


def behaviour(make_loader, scenario):
    """Returns everything that can be observed of a loader, from its constructor to its clean-up."""
    seed_all()
    seen = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            loader = make_loader()
            seen.append(about(loader))
            for number in range(scenario.epochs):
                seen += epoch(loader, scenario, scenario.stop_after if number == 0 else None)
                seen.append("end of epoch")
        except Exception as error:
            seen.append(words(error))
    seen.append(randomness())
    said = {str(w.message) for w in warned if issubclass(w.category, UserWarning)}
    seen.append(sorted(text for text in said if "for the rest of this program" not in text))
    return seen


def is_lowered(dataset, arguments):
    try:
        loader = DataLoader(dataset, **arguments)
        return plan_lowering(Settings.of(loader), loader._progress).__class__ is ArrayPlan
    except Exception:  # refused
        return False


def as_without_workers(said):
    """Returns an error from a worker with the text that it has without workers."""
    if isinstance(said, tuple) and len(said) == 3 and str(said[1]).startswith("Caught ") and said[2]:
        return said[0], said[2][0].partition(": ")[2], []
    return said


class Case(NamedTuple):
    name: str
    theirs: list[Any]
    ours: list[Any]


def fresh_case(number, choose, compared):
    """Loaders that are created for this case."""
    workers = choose.choice([1, 2, 3]) if choose.random() < FRESH / (1 - STAGED) else 0
    dataset = make_dataset(choose)
    plan, make = make_arguments(choose, dataset, workers)
    ordered = workers < 2 or plan["in_order"]
    scenario = Scenario(
        ordered=ordered,
        epochs=2 if plan["persistent_workers"] or not workers or choose.random() < 0.1 else 1,
        stop_after=choose.choice([0, 1, 2] if ordered else [0]) if choose.random() < 0.15 else None,
        interleaved=not workers and choose.random() < 0.1,
    )
    if plan["worker_init_fn"] is cannot_start and workers:
        # After that error, torch's next error is an UnboundLocalError, and Feedline's is the same error again.
        scenario = scenario._replace(epochs=1, stop_after=1)
    if not scenario.ordered or scenario.stop_after is not None:
        _make_quiet(dataset)
    arguments = make if KNOWS_IN_ORDER else lambda: {k: v for k, v in make().items() if k != "in_order"}
    theirs = behaviour(lambda: TorchLoader(dataset, **arguments()), scenario)
    ours = behaviour(lambda: DataLoader(dataset, **arguments()), scenario)
    if workers and is_lowered(dataset, arguments()):
        theirs = [as_without_workers(said) for said in theirs]
    compared["iterable" if isinstance(dataset, IterableDataset) else "map"] += 1
    compared[f"{workers} workers"] += 1
    compared["any order"] += not scenario.ordered
    compared["refused"] += isinstance(ours[0], tuple)
    return Case(f"{type(dataset).__name__}({getattr(dataset, 'kind', '')}) {plan} {scenario}", theirs, ours)


def _make_quiet(dataset):
    """Excludes samples that depend on the worker that produces them, and on the time."""
    for part in (dataset, *getattr(dataset, "datasets", ()), getattr(dataset, "dataset", None)):
        if getattr(part, "kind", None) in ORDER_MATTERS:
            part.kind = "float"
        inner = getattr(part, "dataset", None)
        if getattr(inner, "kind", None) in ORDER_MATTERS:
            inner.kind = "float"


class Pools:
    """Pairs of loaders with persistent workers: the case determines what they read, in which order, and how it is
    collated.
    """

    SHAPES = (
        *({"workers": w, "batch_size": 1, "in_order": True} for w in (1, 2, 3)),
        *({"workers": w, "batch_size": 1, "in_order": False} for w in (2, 3) if KNOWS_IN_ORDER),
        {"workers": 2, "batch_size": None, "in_order": True},
        *({"workers": w, "batch_size": 3, "in_order": True, "stream": True} for w in (1, 2, 3)),
        {"workers": 2, "batch_size": 3, "in_order": True, "stream": True, "drop_last": True},
        {"workers": 2, "batch_size": None, "in_order": True, "stream": True},
    )

    def __init__(self):
        self._pairs = {}

    def case(self, number, choose, compared):
        which = choose.randrange(len(self.SHAPES))
        shape = self.SHAPES[which]
        if which not in self._pairs:
            stage = Stage(shape.get("stream", False), tuple(SAMPLES) if shape["in_order"] else QUIET)
            seed_all()
            theirs = self._loader(TorchLoader, shape, stage)
            seed_all()
            self._pairs[which] = stage, theirs, self._loader(DataLoader, shape, stage)
        stage, theirs, ours = self._pairs[which]
        stage.show(number)
        scenario = Scenario(ordered=shape["in_order"], epochs=1)
        case = Case(
            f"workers that live on, {shape}, {type(stage.case()[0]).__name__}",
            behaviour(lambda: theirs, scenario),
            behaviour(lambda: ours, scenario),
        )
        compared["iterable" if shape.get("stream") else "map"] += 1
        compared[f"{shape['workers']} workers"] += 1
        compared["any order"] += not scenario.ordered
        return case

    def close(self):
        for _, theirs, ours in self._pairs.values():
            for loader in (theirs, ours):
                if loader._iterator is not None:
                    loader._iterator._shutdown_workers()

    @staticmethod
    def _loader(kind, shape, stage):
        arguments = {
            "num_workers": shape["workers"],
            "collate_fn": stage.collate,
            "persistent_workers": True,
            "prefetch_factor": shape["workers"],
            "multiprocessing_context": "fork",
            "generator": torch.Generator().manual_seed(5),
        }
        if not shape["in_order"]:
            arguments["in_order"] = False
        if shape.get("stream"):
            arguments |= {"batch_size": shape["batch_size"], "drop_last": shape.get("drop_last", False)}
            return kind(StagedStream(stage), **arguments)
        if shape["batch_size"] is None:
            return kind(StagedMap(stage), batch_size=None, sampler=StagedOrder(stage, single=True), **arguments)
        return kind(StagedMap(stage), batch_sampler=StagedOrder(stage, single=False), **arguments)


def difference(case):
    pairs = zip(case.theirs, case.ours, strict=False)
    theirs, ours = next(((a, b) for a, b in pairs if a != b), (len(case.theirs), len(case.ours)))
    return f"{case.name}:\n  torch's: {theirs!r:.1500}\n  ours:    {ours!r:.1500}"


def test_the_same_batches_errors_lengths_and_random_numbers():
    differing = []
    compared: collections.Counter[str] = collections.Counter()
    pools = Pools()
    try:
        for number in range(FIRST, FIRST + CASES):
            choose = random.Random(number)
            make_case = pools.case if choose.random() < STAGED else fresh_case
            case = make_case(number, choose, compared)
            if case.theirs != case.ours:
                differing.append(f"case {number}: {difference(case)}")
                if len(differing) == 5:
                    break
    finally:
        pools.close()
    assert not differing, "\n".join(differing)
    if CASES >= 1000:  # the mix has the intended shares
        shares = {what: round(count / CASES, 3) for what, count in compared.items()}
        least = {"map": 0.5, "iterable": 0.2, "0 workers": 0.4, "1 workers": 0.08, "2 workers": 0.1, "3 workers": 0.1}
        least |= {"any order": 0.05, "refused": 0.05}
        assert all(shares[what] >= share for what, share in least.items()), shares
