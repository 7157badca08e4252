# SPDX-License-Identifier: Apache-2.0
"""The code of a worker process or thread, which replies to each task with a batch, an end or an error."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import functools
import os
import random
import signal
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterDataPipe
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import signal_handling
from torch.utils.data._utils import worker as torch_worker

from ...machine import limits
from ..fetching import fetch, stream_libraries
from ..fetching.dataset_wrapper import DatasetWrapper
from ..fetching.failures import Failure
from ..fetching.fetch import BadSamplesError, FetchConfig, make_fetcher
from .channel import BlockingPort
from .gather import RingGatherer
from .ring import Control, Ring
from .ring_writer import RingWriter
from .serialization import LARGE, Encoder, Frame, is_plain, ring_tensor
from .thread_info import hidden_info, set_thread_info
from .worker_args import Load, WorkerArgs, enable_gc

# Messages to a worker, and from it. STATE: (mark of the epoch, whether after its last batch, the dataset's state).
EPOCH, TASK, STOP, LOAD, ASK, AHEAD, LAST, GIVE = 1, 2, 3, 4, 5, 6, 7, 8
DATA, DATA_AND_MORE, END, FAILED, BAD, CRASHED, STATE = 11, 12, 13, 14, 15, 16, 17

STACK_SIGNAL = signal.SIGRTMAX - 2  # requests a worker's Python stack; real-time signals are rarely used otherwise
_PR_SET_PDEATHSIG = 1


@dataclass
class EpochStart:
    """The message that starts an epoch in a worker."""

    epoch: int
    shared_seed: int | None = None
    dataset_epoch: int | None = None
    skip: int = 0  # batches to skip
    batch_size: int | None = None
    state: dict[str, Any] | None = None
    since: int = 0  # batches between `state` and the position, of which `skip` are skipped, or `again` read
    again: list[Any] = field(default_factory=list)  # indices of batches to read and drop
    ended: bool = False  # `state` is from the end of an epoch: this is the next one
    mark: int | None = None  # identifies the epoch in the reply; None if no state is wanted


@dataclass
class WorkerConfig:
    """The settings that are the same for all workers of a loader."""

    num_workers: int
    base_seed: int
    fetch: FetchConfig
    wants_state: int  # batches between two states; 0: none before an ASK message
    ring: Ring | None = None
    budget: int = 0
    ahead: int = 2
    starting: int | None = None  # how many workers start; None: all
    readers: int | None = None  # the number of workers among which a dataset is sharded; None: all
    stack_fd: Any = None
    method: str = "multiprocessing"
    main_thread: bool = True
    extra: dict[str, Any] = field(default_factory=dict)


class Session:
    """The state of a worker, independent of how messages are passed."""

    def __init__(
        self, config: WorkerConfig, worker: int, notice: fetch.Notice, gatherer: fetch.Gatherer | None = None
    ) -> None:
        self._config, self._worker, self._notice, self._gatherer = config, worker, notice, gatherer
        self._fetch_config = config.fetch
        self._worker_args: WorkerArgs | None = None
        self._fetcher: fetch.Fetcher | None = None
        self._start_failure: Failure | None = None  # permanent: a worker that could not be set up produces no batches
        self._epoch_failure: Failure | None = None
        self._ended = False
        self._has_loaded = False  # a state was loaded into the dataset for the latest epoch
        self._shared_rng: torch.Generator | None = None
        self._wants_state, self._since_state = config.wants_state, 0
        self._first_print = config.fetch.iterable and config.num_workers > 1
        self._begun_with: dict[str, Any] | None = None  # the state at the start of the epoch, if requested

    def start(self, load: Callable[[], WorkerArgs], own_process: bool) -> None:
        self._notice(fetch.STARTING, None)
        try:
            self._worker_args = load()
            self._set_up(own_process)
        except Exception as error:
            self._start_failure = self._failure(error)

    def _set_up(self, own_process: bool) -> None:
        config, worker, worker_args = self._config, self._worker, self._worker_args
        assert worker_args is not None
        seed = config.base_seed + worker
        more: dict[str, Any] = {}
        if own_process:
            random.seed(seed)
            torch.manual_seed(seed)
            np.random.seed(torch_worker._generate_state(config.base_seed, worker))
        else:
            more = _thread_generators(seed, config.base_seed, worker)
            if config.fetch.collate_fn is torch_collate.default_collate:
                self._fetch_config = replace(config.fetch, collate_fn=_collate_in_thread)
        dataset = _original(worker_args.dataset)
        info = torch_worker.WorkerInfo(
            id=worker, num_workers=config.readers or config.num_workers, seed=seed, dataset=dataset, **more
        )
        set_worker_info(info, own_process)
        if worker_args.init_fn is not None:
            self._notice(fetch.INIT, None)
            worker_args.init_fn(worker)

    def answer(self, kind: int, value: Any) -> tuple[int, Any] | None:
        """Returns the reply to a message, if any."""
        if kind == EPOCH:
            self._begin(value)
            return None if value.mark is None else (STATE, (value.mark, False, self._begun_with))
        if kind == ASK:
            self._wants_state, self._since_state = value, 0
            return None
        if kind == GIVE:
            self._give(*value)
            return None
        if kind == LAST:
            return STATE, self._last_state(value)
        failure = self._start_failure or self._epoch_failure
        if failure is not None:
            return FAILED, failure
        if self._ended:
            return None
        assert self._fetcher is not None
        try:
            data = self._fetcher.fetch(value)
            more = self._more(data)
        except BadSamplesError as bad:
            return BAD, bad.bad
        except StopIteration as error:
            if self._config.fetch.iterable:
                self._ended = True
                return self._end()
            return FAILED, self._fetcher.failure(error)
        except Exception as error:
            return FAILED, self._fetcher.failure(error)
        return (DATA_AND_MORE, (data, more)) if more else (DATA, data)

    def _give(self, name: str, value: Any) -> None:
        """Sets an attribute of the dataset that the training loop has set."""
        if self._worker_args is not None:
            put_attribute(_original(self._worker_args.dataset), name, value)

    def _begin(self, start: EpochStart) -> None:
        self._ended = False
        self._since_state = start.since
        self._epoch_failure = self._begun_with = None
        worker_args = self._worker_args
        if worker_args is None:
            return
        try:
            dataset = worker_args.dataset
            if isinstance(dataset, IterDataPipe):
                from torch.utils.data.graph_settings import apply_random_seed

                self._shared_rng = self._shared_rng or torch.Generator()
                self._shared_rng.manual_seed(start.shared_seed or 0)
                dataset = worker_args.dataset = apply_random_seed(dataset, self._shared_rng)
            if start.dataset_epoch is not None and callable(getattr(dataset, "set_epoch", None)):
                dataset.set_epoch(start.dataset_epoch)
            if isinstance(dataset, DatasetWrapper):
                dataset.begin_epoch()
            state = start.state
            if state is not None and state.get("dataset") is not None:
                fetch.load_dataset_state(dataset, state["dataset"])
                self._has_loaded = True
            elif self._has_loaded:
                self._forget_loaded()
            self._fetcher = self._make_fetcher(dataset, start)
            if state is not None and isinstance(self._fetcher, fetch.IterableFetcher):
                self._fetcher.restore(state)
            if start.ended and isinstance(self._fetcher, fetch.IterableFetcher):
                self._forget_loaded()
                self._fetcher = self._make_fetcher(dataset, start)  # as in an uninterrupted run
            if start.skip:
                self._fetcher.skip(start.skip, start.batch_size)
            for index in start.again:
                self._fetcher.fetch_and_drop(index)
            if start.mark is not None:
                self._begun_with = self._fetcher.state()
        except Exception as error:
            self._fetcher = None
            self._epoch_failure = self._failure(error)

    def _forget_loaded(self) -> None:
        assert self._worker_args is not None
        stream_libraries.forget_loaded(_original(self._worker_args.dataset))
        self._has_loaded = False

    def _make_fetcher(self, dataset: Any, start: EpochStart) -> fetch.Fetcher:
        return make_fetcher(self._fetch_config, dataset, start.epoch, self._worker, self._notice, self._gatherer)

    def _end(self) -> tuple[int, Any]:
        """Returns the reply at the end of a stream. For persistent workers, the reply contains the state from which the
        next epoch begins.
        """
        assert self._fetcher is not None
        try:
            return END, self._fetcher.state() if self._wants_state else None
        except Exception as error:
            self._ended, self._epoch_failure = False, self._fetcher.failure(error)
            return FAILED, self._epoch_failure

    def _last_state(self, mark: int) -> tuple[int, bool, Any]:
        """Returns the state after the last batch of an epoch of a map-style dataset."""
        state = None
        if self._fetcher is not None:
            with contextlib.suppress(Exception):  # requests within an epoch raise the error
                state = self._fetcher.state()
        return mark, True, state

    def _more(self, data: Any) -> dict[str, Any]:
        more: dict[str, Any] = {}
        assert self._fetcher is not None
        if self._fetcher.bad:
            more["bad"] = self._fetcher.bad
        if self._fetcher.is_short:
            more["short"] = True
        if self._wants_state:
            self._since_state += 1
            if self._since_state % self._wants_state == 0:
                state = self._fetcher.state()
                if state is not None:
                    more["state"] = state
        if self._first_print:
            self._first_print = False
            with contextlib.suppress(Exception):
                more["print"] = zlib.crc32(b"".join(Encoder().encode(0, 0, data)))
        return more

    def crash(self, error: BaseException) -> Failure:
        """Returns the error that ends the worker: an exit that the dataset requested, or an error in Feedline's
        code.
        """
        return self._failure(error) if self._fetcher is None else self._fetcher.failure(error)

    def _failure(self, error: BaseException) -> Failure:
        return Failure(error, f"in DataLoader worker process {self._worker}", self._worker, None, None)


def _original(dataset: Any) -> Any:
    """Returns the user's dataset if `dataset` wraps it; otherwise `dataset` itself."""
    return dataset.original if isinstance(dataset, DatasetWrapper) else dataset


def put_attribute(dataset: Any, name: str, value: Any) -> None:
    """Sets an attribute. `name` may be an attribute of a part, such as ``"transform.size"``."""
    *parts, last = name.split(".")
    setattr(functools.reduce(getattr, parts, dataset), last, value)


def _thread_generators(seed: int, base_seed: int, worker: int) -> dict[str, Any]:
    kind = getattr(torch_worker, "_RNG", None)
    if kind is None:
        return {}
    generators = kind(
        random_generator=random.Random(seed),
        torch_generator=torch.Generator().manual_seed(seed),
        numpy_generator=np.random.default_rng(torch_worker._generate_state(base_seed, worker)),
    )
    return {"rng": generators, "worker_method": "thread"}


def _collate_in_thread(samples: list[Any]) -> Any:
    """Calls default_collate without stacking into shared memory, which it would do in a worker process; threads share
    all memory anyway.
    """
    with hidden_info():
        return torch_collate.default_collate(samples)


@contextlib.contextmanager
def _not_in_worker() -> Iterator[None]:
    info, torch_worker._worker_info = torch_worker._worker_info, None
    try:
        yield
    finally:
        torch_worker._worker_info = info


def set_worker_info(info: Any, own_process: bool) -> None:
    if own_process:
        torch_worker._worker_info = info
    else:
        set_thread_info(info)


def run_process(
    config: WorkerConfig,
    load: Load,
    worker: int,
    tasks: Connection,
    results: Connection,
    occupied: Sequence[tuple[int, int]],
    inherited: Callable[[], None],
) -> None:
    """Main function of a worker process."""
    assert config.ring is not None
    parent = os.getppid()
    inherited()
    control = config.ring.control(worker)
    control[Control.READY] = set_signals(config.main_thread, config.stack_fd.fd, parent)
    port = BlockingPort(tasks, results, lambda: not control[Control.STOP] and os.getppid() == parent)
    with contextlib.suppress(Stopped):
        _work(config, load, worker, port, control, occupied)


def _work(
    config: WorkerConfig,
    load: Load,
    worker: int,
    port: BlockingPort,
    control: Control,
    occupied: Sequence[tuple[int, int]],
) -> None:
    """Sends any exception, from the user's code or from Feedline, to the training loop before this process ends."""
    service: Service | None = None
    try:
        service = Service(config, worker, port, control, occupied)

        def loaded() -> WorkerArgs:
            worker_args = load(port, worker)
            if worker_args is None:
                raise Stopped
            enable_gc()
            return worker_args

        service.start(loaded)
        service.serve()
    except Stopped:
        raise
    except BaseException as error:
        service_crashed(service, port, worker, error)
        raise


def service_crashed(service: Service | None, port: BlockingPort, worker: int, error: BaseException) -> None:
    """Sends the error that ended a worker to the training loop."""
    if service is None:
        failure = Failure(error, f"in DataLoader worker process {worker}", worker, None, None)
    else:
        failure = service.session.crash(error)
    port.send(Encoder().encode(0, CRASHED, failure))


class Stopped(BaseException):
    """Raised if the loader no longer needs this worker, which is in the middle of a sample."""


def _stop_unless(wanted: bool) -> None:
    if not wanted:
        raise Stopped


class Service:
    """A session in a process, with its pipes and batch memory."""

    def __init__(
        self,
        config: WorkerConfig,
        worker: int,
        port: BlockingPort,
        control: Control,
        occupied: Sequence[tuple[int, int]],
    ) -> None:
        assert config.ring is not None
        self.port, self.control = port, control
        self.writer = RingWriter(
            config.ring, worker, config.budget, config.ahead, occupied, lambda: _stop_unless(port.is_wanted())
        )
        gatherer = RingGatherer(self.writer)
        gathers = _collate_into(self.writer, gatherer) and config.fetch.collate_fn is torch_collate.default_collate
        self._encoder = Encoder(self.writer)
        self.session = Session(
            config, worker, self._notice, gatherer if gathers and not config.fetch.leaves_short else None
        )

    def _notice(self, stage: int, sample: Any) -> None:
        control = self.control
        control[Control.STAGE] = stage
        control[Control.INDEX] = sample if type(sample) is int and abs(sample) < 1 << 62 else -1
        control[Control.SAMPLES] += 1
        if control[Control.STOP]:
            raise Stopped

    def start(self, load: Callable[[], WorkerArgs]) -> None:
        self.session.start(load, own_process=True)
        self.control[Control.STAGE] = fetch.WAITING

    def serve(self) -> None:
        """Runs until the loader no longer needs this worker."""
        while (frame := self.port.receive()) is not None and self.answer(frame):
            pass

    def answer(self, frame: Frame) -> bool:
        """Returns False if the loader no longer needs this worker."""
        if frame.kind == STOP:
            return False
        if frame.kind == TASK and frame.task < self.control[Control.FIRST_TASK]:
            return True  # from an abandoned epoch
        if frame.kind == AHEAD:
            self.writer.ahead = frame.decode()
            return True
        self.writer.task = frame.task
        reply = self.session.answer(frame.kind, frame.decode())
        if reply is not None:
            self.control[Control.STAGE] = fetch.SENDING
            parts = _encoded(self.session, self._encoder, frame.task, *reply)
            del reply
            self.writer.end_task()
            self.control[Control.RSS] = limits.resident_bytes()
            if not self.port.send(parts):
                return False
        self.control[Control.STAGE] = fetch.WAITING
        return True


def _encoded(session: Session, encoder: Encoder, task: int, kind: int, value: Any) -> list[bytes]:
    try:
        return encoder.encode(task, kind, value)
    except Exception as error:
        # If a batch cannot be encoded, this is the batch's error and does not end the worker.
        return Encoder().encode(task, FAILED, session._failure(error))


def set_signals(main_thread: bool, stack_fd: int, parent: int) -> bool:
    """Called at the start of a worker process. Returns whether the process can print its Python stack on request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    if main_thread:
        # The signal is sent when the thread that started us ends; if it is the main thread, the process ends with it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
    with contextlib.suppress(Exception):
        signal_handling._set_worker_signal_handlers()
    with contextlib.suppress(Exception):
        torch.multiprocessing._set_thread_name("pt_data_worker")
    torch.set_num_threads(1)
    try:
        faulthandler.register(STACK_SIGNAL, file=stack_fd, all_threads=True, chain=False)
    except Exception:
        return False
    return True


def _collate_into(writer: RingWriter, gatherer: RingGatherer) -> bool:
    """Makes torch's default_collate stack into the ring, also when the user's collate_fn calls it.

    Returns False if the user has replaced torch's function.
    """
    table = torch_collate.default_collate_fn_map
    stock = torch_collate.collate_tensor_fn
    if table.get(torch.Tensor) is not stock:
        return False

    def collate_tensor(batch: Any, *, collate_fn_map: Any = None) -> torch.Tensor:
        first = batch[0]
        plain = isinstance(batch, (list, tuple))
        if not plain or not all(type(t) is torch.Tensor and t.dtype == first.dtype and is_plain(t) for t in batch):
            if type(first) is torch.Tensor:
                return stock(batch, collate_fn_map=collate_fn_map)
            with _not_in_worker():  # torch would otherwise stack into its own shared memory file
                return stock(batch, collate_fn_map=collate_fn_map)
        size = first.numel() * first.element_size() * len(batch)
        if size < LARGE or any(t.shape != first.shape for t in batch):
            return torch.stack(tuple(batch), 0)
        gathered = gatherer.batch_of(batch)
        if gathered is not None:
            return gathered
        out = ring_tensor(writer.allocate(size), first.dtype, (len(batch), *first.shape))
        return torch.stack(tuple(batch), 0, out=out)

    table[torch.Tensor] = collate_tensor
    return True
