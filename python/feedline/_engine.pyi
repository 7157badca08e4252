# SPDX-License-Identifier: Apache-2.0
# ruff: noqa
# fmt: off
"""
Feedline's engine, for internal use; its names may change. The public interface is the package `feedline`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import numpy.typing


class InspectionFinding:
    """Data that a reader would drop, merge or reject."""

    @property
    def code(self) -> str:
        """
        Stable identifier of the kind of finding, such as "member_without_dot".
        """

    @property
    def severity(self) -> str:
        """One of "error", "warning" and "note"."""

    @property
    def shard(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def text(self) -> str:
        """A sentence that describes the problem and its remedy."""

    def __repr__(self) -> str: ...

class Inspection:
    """A summary of a dataset's contents, collected without decoding samples."""

    @property
    def format(self) -> str: ...

    @property
    def samples(self) -> int: ...

    @property
    def shards(self) -> int:
        """Number of tar files; 0 if the dataset is a folder."""

    @property
    def bytes(self) -> int:
        """Total size in bytes of the fields that a reader reads."""

    @property
    def smallest_bytes(self) -> int:
        """Encoded size of the smallest image, in bytes."""

    @property
    def largest_bytes(self) -> int:
        """Encoded size of the largest image, in bytes."""

    @property
    def fields(self) -> list[str]: ...

    @property
    def extensions(self) -> dict[str, int]:
        """
        Number of files or tar members per extension, including those that are not read.
        """

    @property
    def classes(self) -> dict[str, int]:
        """Number of samples per class; empty if the classes are unknown."""

    @property
    def findings(self) -> list[InspectionFinding]: ...

    def __repr__(self) -> str: ...

def inspect(source: str, options: dict[str, Any] = {}) -> Inspection: ...

class Dataset:
    def __len__(self) -> int: ...

    @property
    def source(self) -> str: ...

    @property
    def format(self) -> str: ...

    @property
    def classes(self) -> list[str]: ...

    def shard_ends(self) -> list[int]: ...

    def block_ends(self) -> list[int]: ...

    @property
    def unopened(self, /) -> list[tuple[str, str, str, str]]: ...

    @property
    def remarks(self, /) -> list[tuple[str, str, str]]: ...

    @property
    def fingerprint(self) -> int: ...

    def inspect(self) -> Inspection: ...

    def operations(self) -> list[str]: ...

    def schema(self) -> list[tuple[str, tuple[int, ...], str, str, str]]: ...

    def explain(self) -> str: ...

    def cache(self, where: str, budget: int) -> Dataset: ...

    def collate(self, form: str, fields: Sequence[str]) -> Dataset: ...

    def views(self, views: Sequence[tuple[str, Dataset, int | None, Sequence[int]]], field: str) -> Dataset: ...

    def five_crop(self, size: tuple[int, int], field: str) -> Dataset: ...

    def ten_crop(self, size: tuple[int, int], vertical_flip: bool, field: str) -> Dataset: ...

    def roles(self) -> list[tuple[str, str, str, bool]]: ...

    def with_operation(self, name: str, fields: Sequence[str], arguments: dict[str, Any]) -> Dataset: ...

    def sample(self, index: int, seed: int, epoch: int) -> list[tuple[str, Any]]: ...

    def draw(self, index: int, seed: int, epoch: int) -> list[tuple[str, str, list[float], str]]: ...

    def draw_for_size(self, height: int, width: int, index: int, seed: int, epoch: int) -> list[tuple[str, str, list[float], str]]: ...

    def take_image_depth(self) -> str: ...

    def encoded(self, index: int) -> bytes: ...

    def files(self, index: int) -> tuple[bytes, int | None, list[tuple[bytes, bytes]]]: ...

    def file_sizes(self, index: int) -> tuple[bytes, int | None, list[tuple[bytes, int]]]: ...

    def key(self, index: int) -> str: ...

    def measure_decode(self, images: int, threads: int, seed: int) -> tuple[int, int, float, float, int]: ...

    def make_checkpoints(self, threads: int) -> tuple[int, int, str]: ...

    def reader(self, layout: str) -> SampleReader: ...

def operation_types() -> list[dict[str, Any]]: ...

class SampleReader:
    def schema(self) -> list[tuple[str, tuple[int, ...], str, str, str]]: ...

    def read(self, index: int, draw: int, seed: int, epoch: int) -> list[tuple[str, Any]]: ...

    def read_encoded(self, data: Any, draw: int, seed: int, epoch: int) -> list[tuple[str, Any]]: ...

    def read_pixels(self, pixels: numpy.typing.NDArray[numpy.uint8], draw: int, seed: int, epoch: int) -> list[tuple[str, Any]]: ...

def label_names() -> list[str]:
    """Common names of label columns."""

def open(source: str, options: dict[str, Any] = {}) -> Dataset: ...

MAX_DIMENSIONS: int = 6

def map(dataset: Dataset, chain: object) -> Dataset: ...

class GivenFiles:
    def __init__(self, name: str) -> None: ...

    @property
    def dataset(self) -> Dataset: ...

    def add(self, paths: Sequence[bytes]) -> int: ...

    def add_images(self, images: Sequence[tuple[bytes, int, int]]) -> int: ...

    def keep(self, owner: object) -> None: ...

    def forget(self, first: int) -> None: ...

    def forget_all(self) -> None: ...

def arrays(arrays: Sequence[tuple[str, object, int, int, int, str, Sequence[int], object, bytes, str]]) -> Dataset: ...

def mix(datasets: Sequence[Dataset], weights: Sequence[float], until: str, samples: int) -> Dataset: ...

def subset(dataset: Dataset, indices: Sequence[int]) -> Dataset: ...

def split(dataset: Dataset, counts: Sequence[int], seed: int, classes: Sequence[int]) -> list[Dataset]: ...

def repeat(dataset: Dataset, times: int) -> Dataset: ...

def numbers(dataset: Dataset, field: str) -> list[int]: ...

def json_value(stored: bytes, field: str, sample: int) -> Any: ...

def values(dataset: Dataset, fields: Sequence[str]) -> list[list[int | float | bytes | None]]: ...

def volumes(name: str, fields: Sequence[tuple[str, bool]], samples: Sequence[Sequence[tuple[str, str, str]]], index_directory: str, cache_directory: str, cache_bytes: int, cache_share: float) -> Dataset: ...

def patches(dataset: Dataset, patches: int) -> Dataset: ...

def grid_patches(dataset: Dataset, size: Sequence[int], overlap: Sequence[int], pad: bool) -> Dataset: ...

def tokens(files: Sequence[tuple[str, int, bytes | None, str]], window: int, stride: int, stored: str, output: str, vocabulary: int, separator: int | None, documents: str, shortest: int, pad: int, memory: int | None) -> Dataset: ...

class TextCells:
    def __len__(self) -> int: ...

    def to_list(self, most: int | None = None) -> list[str]: ...

def text_cells_of_list(values: list[Any]) -> TextCells | int: ...

def text_cells_of_arrow(chunks: Sequence[tuple[int, int, int, tuple[int, int]]], owner: object) -> TextCells: ...

def text_cells_of_arrow_views(chunks: Sequence[tuple[int, int, Sequence[tuple[int, int]]]], owner: object) -> TextCells: ...

def text_cells_of_utf32(address: int, rows: int, stride: int, characters: int, owner: object) -> TextCells: ...

def text_cells_of_integers(address: int, rows: int, stride: int, dtype: str, owner: object) -> TextCells: ...

class RowColumns:
    def __init__(self) -> None: ...

    def add_files(self, name: str, kind: str, root: str, literals: Sequence[str], cells: Sequence[TextCells], offsets: object | None, position: int) -> None: ...

    def add_audio(self, name: str, root: str, cells: TextCells, begins: object, durations: object, channels: object | None = None) -> None: ...

    def add_texts(self, name: str, cells: TextCells) -> None: ...

    def add_numbers(self, row: tuple[str, object, int, int, int, str, Sequence[int], object, str]) -> None: ...

    def add_multi_hot(self, codes: tuple[str, object, int, int, int, str, Sequence[int], object, str], classes: int) -> None: ...

    def set_classes(self, classes: Sequence[str]) -> None: ...

    def set_row_names(self, names: TextCells) -> None: ...

    def set_unopened(self, columns: Sequence[tuple[str, str, str, str]]) -> None: ...

    def open(self, source: str, options: dict[str, Any]) -> Dataset: ...

class EpisodeColumns:
    def __init__(self) -> None: ...

    def add_numbers(self, row: tuple[str, object, int, int, int, str, Sequence[int], object, str], steps: Sequence[int] | None) -> None: ...

    def add_pads(self, name: str, steps: Sequence[int]) -> None: ...

    def add_texts(self, name: str, cells: TextCells, cell_of_row: tuple[str, object, int, int, int, str, Sequence[int], object, str] | None) -> None: ...

    def add_videos(self, name: str, paths: TextCells, begins: Sequence[float], times: tuple[str, object, int, int, int, str, Sequence[int], object, str], tolerance: float, steps: Sequence[int] | None, size: tuple[int, int] | None) -> None: ...

    def add_images(self, name: str, images: Dataset, field: str, steps: Sequence[int] | None, size: tuple[int, int] | None) -> None: ...

    def set_unopened(self, columns: Sequence[tuple[str, str, str, str]]) -> None: ...

    def open(self, source: str, format: str, ends: Sequence[int], options: dict[str, Any]) -> Dataset: ...

def read_table(source: str) -> tuple[str, list[tuple[str, str, TextCells, bytes, bytes]], list[tuple[str, str]]]: ...

def field_values(dataset: Dataset, field: str) -> Any: ...

class Batch:
    @property
    def names(self) -> list[str]: ...

    @property
    def index(self) -> int: ...

    @property
    def samples(self) -> list[int]: ...

    def __len__(self) -> int: ...

    @property
    def bad(self) -> list[tuple[int, Exception]]: ...

    def to_numpy(self) -> list[Any]: ...

    def to_torch(self) -> list[Any]: ...

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...

class Sampling:
    @staticmethod
    def by_weight(weights: Sequence[float]) -> Sampling: ...

    @staticmethod
    def undersample(classes: Sequence[int]) -> Sampling: ...

    @staticmethod
    def in_order(indices: Sequence[int], samples: int, fingerprint: int | None = None) -> Sampling: ...

    @property
    def positions(self) -> int: ...

    @property
    def fingerprint(self) -> int: ...

class PackedDataset:
    @property
    def documents(self) -> int: ...

def pack_sequences(dataset: Dataset, options: dict[str, Any]) -> PackedDataset: ...

class Loader:
    @property
    def batches(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def next_epoch(self) -> int: ...

    def start_epoch(self, prepare_next: bool = True, feeds_gpu: bool = False) -> int: ...

    @property
    def run(self) -> int: ...

    @property
    def rows_per_rank(self) -> list[int]: ...

    def set_epoch(self, epoch: int) -> None: ...

    def set_sampling(self, sampling: Sampling) -> None: ...

    def set_mix_weights(self, weights: Sequence[float]) -> None: ...

    def give(self, indices: Sequence[int], draws: Sequence[int]) -> None: ...

    def end_giving(self) -> None: ...

    def next(self, run: int | None = None) -> Batch | None: ...

    def next_arrays(self, run: int, torch: bool, dlpack: bool = False) -> list[Any] | None: ...

    def next_packed(self, run: int, torch: bool) -> tuple[list[Any], int, int, list[int]] | None: ...

    def batches_in(self, epoch: int) -> int: ...

    def pack_counts(self, epoch: int, windows: int | None = None) -> dict[str, int]: ...

    @property
    def last_samples(self) -> list[int]: ...

    @property
    def field_names(self) -> list[str]: ...

    @property
    def has_errors(self) -> bool: ...

    def take_errors(self) -> list[dict[str, Any]]: ...

    def errors(self) -> list[dict[str, Any]]: ...

    def stats(self) -> dict[str, Any]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state that `state()` returned."""

    def warning(self) -> str: ...

    def explain(self) -> str: ...

    @property
    def changes(self) -> int: ...

    def close(self) -> None: ...

def make_loader(dataset: Dataset, options: dict[str, Any]) -> Loader: ...

def make_packed_loader(dataset: PackedDataset, options: dict[str, Any], labels: str) -> Loader: ...

def make_given_loader(dataset: Dataset, options: dict[str, Any]) -> Loader: ...

def loader_options() -> dict[str, Any]:
    """Returns the options of loaders with their default values."""

def image_formats() -> list[dict[str, Any]]: ...
def video_extensions() -> list[str]: ...
def ffmpeg_version() -> str: ...

def image_format_of(encoded: bytes | bytearray | memoryview) -> str: ...

def pillow_mode_of(encoded: bytes | bytearray | memoryview) -> str: ...

def image_traits(encoded: bytes | bytearray | memoryview) -> tuple[str, int, list[str]]: ...

def image_info(encoded: bytes | bytearray | memoryview) -> tuple[str, int, int]: ...

def decode_image(encoded: bytes | bytearray | memoryview, region: tuple[int, int, int, int] | None, mode: str, applies_exif: bool = ...) -> numpy.typing.NDArray[numpy.uint8]: ...

def resize_image(pixels: numpy.typing.NDArray[numpy.uint8], height: int, width: int, interpolation: str) -> numpy.typing.NDArray[numpy.uint8]: ...

def upright_size(encoded: bytes | bytearray | memoryview) -> tuple[int, int]: ...

def write_encoder_input(encoded: bytes | bytearray | memoryview, image: tuple[int, int], interpolation: str, windows: list[tuple[int, int, int, int, int, int]], patches: tuple[int, int, int], values: numpy.typing.NDArray[numpy.float32], out: numpy.typing.NDArray[numpy.float32]) -> None: ...

def jpeg_with_restarts(encoded: bytes | bytearray | memoryview, interval: int) -> bytes | None: ...

def simd_variants() -> list[str]: ...

def active_simd_variant() -> str: ...

def force_simd_variant(name: str) -> None: ...

def follow_pillow(major: int) -> None: ...

def pixel_operation(pixels: numpy.typing.NDArray[numpy.uint8], name: str, values: Sequence[float], interpolation: str, fill: tuple[int, int, int], size: tuple[int, int] | None, noise: numpy.typing.NDArray[numpy.uint8] | None) -> numpy.typing.NDArray[numpy.uint8]: ...

def time_pixel_operation(pixels: numpy.typing.NDArray[numpy.uint8], name: str, values: Sequence[float], interpolation: str, runs: int) -> list[float]: ...

def elastic_displacement(size: tuple[int, int], alpha: Sequence[float], sigma: Sequence[float], seed: int, epoch: int, sample: int, stream: int) -> list[float]: ...

def inverse_affine_matrix(center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]) -> list[float]: ...

def perspective_coefficients(start: Sequence[Sequence[float]], end: Sequence[Sequence[float]]) -> list[float]: ...

def sample_order(*, samples: int, shard_ends: Sequence[int], shuffle: bool, shard_window: int, seed: int, epoch: int, begin: int, count: int) -> numpy.typing.NDArray[numpy.int64]: ...

def rank_order(*, samples: int, shard_ends: Sequence[int], shuffle: bool, shard_window: int, seed: int, epoch: int, batch_size: int, rank: int, world_size: int) -> numpy.typing.NDArray[numpy.int64]: ...

def gather_rows(data: int, rows: int, row_bytes: int, indices: int, count: int, out: int, release_gil: bool) -> bool: ...

def mix_up(data: int, shape: tuple[int, int, int, int], share: float) -> None: ...

def cut_mix(data: int, shape: tuple[int, int, int, int], box: tuple[int, int, int, int]) -> None: ...

def span_stages() -> list[str]: ...

def start_spans(spans_per_thread: int) -> None: ...

def take_spans() -> tuple[bytes, int]:
    """
    Returns the latest spans (32 bytes each) and the number of spans that were overwritten.
    """

def stop_spans() -> None: ...

class GpuReader:
    """
    Reads counters of the machine's NVIDIA GPUs through NVML. Without a driver, `sample` returns an empty list, and `unavailable` is the reason. Not thread-safe.
    """

    def __init__(self, library: str = 'libnvidia-ml.so.1') -> None: ...

    def sample(self, now_ns: int) -> list[dict[str, Any]]:
        """
        Returns one dict per GPU; unavailable values are None. The first call opens the driver and may take seconds; later calls take about 20 ms, mostly sleeping.
        """

    def processes(self) -> list[dict[str, Any]]:
        """
        Returns the GPU's `index`, `pid` and `memory_bytes` for each process that uses a GPU.
        """

    def driver(self) -> dict[str, Any]:
        """
        Opens the driver. Returns `is_there` (whether the driver's library is installed), its `version`, and `gpus` (the number of GPUs, or None).
        """

    def gpus(self) -> list[dict[str, Any]]:
        """
        Returns the constant properties of each GPU, once another method has opened the driver.
        """

    @property
    def unavailable(self) -> str:
        """
        The reason why no data is available, with the remedy; empty if data is available.
        """

    def notes(self) -> list[str]:
        """Returns a sentence for each counter that could not be read."""

class EventRing:
    """
    Records events of this process in a file that remains after the process ends.
    """

    def __init__(self, path: str, capacity: int) -> None: ...

    def record(self, kind: int, begin_ns: int, cpu_ns: int = 0, a: int = 0, b: int = 0, keep: bool = True) -> None:
        """
        Records an event that ends now; with `keep=False`, only counts it. Treats a negative `cpu_ns` as 0.
        """

def look_at_files(paths: Sequence[str]) -> list[dict[str, Any]]:
    """
    Returns size, bytes in the page cache, bytes not yet written to disk, and device of each file. Skips files that are not regular or not readable.
    """

def read_events(path: str) -> dict[str, Any]: ...

class HostSampler:
    """Samples counters of the host and of a process tree in a thread."""

    def __init__(self, pid: int, period_s: float, root: str = '', closely_from: str = '') -> None: ...

    def stop(self) -> None: ...

    def record(self) -> dict[str, Any]: ...

class CpuLimits:
    """The CPUs that a process may use."""

    @property
    def allowed(self) -> list[int]:
        """The numbers of the CPUs in both the affinity mask and the cpuset."""

    @property
    def quota(self) -> float | None:
        """The cgroup's CPU quota, in CPUs; None if there is no quota."""

    @property
    def around(self) -> int:
        """Number of CPUs of the machine or the container."""

    @property
    def capacity(self) -> float:
        """CPU time available per second, in CPUs."""

    @property
    def threads(self) -> int:
        """Number of threads that can be kept busy: 3 for a quota of 2.5 CPUs."""

class MemoryLimits:
    """
    The memory that a process may use, in bytes; a value is None if it is not reported or unlimited.
    """

    @property
    def physical_bytes(self) -> int: ...

    @property
    def available_bytes(self) -> int:
        """Memory available on the machine."""

    @property
    def limit_bytes(self) -> int | None:
        """The lowest limit of the cgroup and its ancestors."""

    @property
    def binding_bytes(self) -> int | None:
        """The limit of the cgroup or ancestor with the least free memory."""

    @property
    def binding_used_bytes(self) -> int | None:
        """
        Memory used by the cgroup that `binding_bytes` limits, without reclaimable page cache.
        """

    @property
    def swap_limit_bytes(self) -> int | None: ...

    @property
    def oom_kills(self) -> int | None:
        """
        Number of processes in this cgroup that were killed because memory ran out.
        """

    @property
    def usable_bytes(self) -> int: ...

    @property
    def left_bytes(self) -> int: ...

def cpu_limits(root: str = '', pid: int = 0) -> CpuLimits:
    """
    Returns the CPU limits of a process; a `pid` of 0 means this process. `root` is the location of /proc and /sys.
    """

def memory_limits(root: str = '', pid: int = 0) -> MemoryLimits: ...

def cgroup_version(root: str = '', pid: int = 0) -> int:
    """
    Returns the version of the process's cgroup, 1 or 2; 0 if no cgroup is visible.
    """

def online_cpus() -> int:
    """
    Returns the number of the machine's CPUs, whether or not this process may use them.
    """

def local_ranks() -> tuple[int, int]:
    """
    Returns this process's rank on this machine and the number of ranks on it, as set by the launcher.
    """

def share_of_cpus(root: str = '') -> int:
    """Returns the number of threads that this rank can keep busy."""

def sharing_ranks(root: str = '') -> int:
    """Returns the number of ranks that share the CPUs of this process."""

class GpuMark:
    """Marks a point in the work queued on every GPU that this process uses."""

    def is_past(self) -> bool:
        """
        Returns whether all work queued before the mark is complete. Does not wait.
        """

class PageLocks:
    """
    Page-locks the caller's memory for the GPUs that this process uses. Used by one thread at a time.
    """

    @staticmethod
    def check() -> None:
        """
        Raises ConfigError if page-locking is unavailable. Does not initialise CUDA.
        """

    @staticmethod
    def open() -> PageLocks:
        """Returns a new object; call this after torch has initialised CUDA."""

    @staticmethod
    def check_room(bytes: int) -> None:
        """
        Raises StorageError if the machine or the cgroup has less than `bytes` of free memory.
        """

    def has_gpu(self, preferred: int) -> bool:
        """
        Returns whether this process uses a GPU for which memory can be locked. Does not create a CUDA context.
        """

    def lock(self, address: int, bytes: int) -> None:
        """Page-locks a range of whole pages for every GPU."""

    def unlock(self, address: int) -> None: ...

    def mark(self) -> GpuMark | None:
        """
        Marks the work queued on the GPUs so far. Returns None while a CUDA graph is captured.
        """

    @property
    def has_ended(self) -> bool:
        """Whether the driver has shut down, as it does when the process ends."""

class OpenGate:
    """Calls a function for some of the files that this process opens."""

    def __init__(self, heard: Callable[[tuple[Any, ...]], object]) -> None: ...

    @property
    def passing(self) -> int:
        """Number of opens to skip before `heard` is called again."""

    @passing.setter
    def passing(self, arg: int, /) -> None: ...

    @property
    def hook(self) -> Callable[[str, tuple[Any, ...]], object]:
        """
        The hook for sys.addaudithook(). Passes the arguments of an "open" event (path, mode, flags) to `heard`.
        """

def find_stores_by(find: object) -> None: ...

def read_foreign_images_by(open: object, decode: object) -> None: ...

def audio_extensions() -> list[str]:
    """The extensions of audio files, without a dot."""

def set_audio_library(is_soxr: bool, file: str) -> None: ...

def audio_library(is_soxr: bool) -> tuple[str, str, str]: ...

def foreign_images_decoded() -> dict[str, int]:
    """
    Returns the number of images that this process has decoded with Pillow, by kind.
    """

def find_credentials_by(find: object) -> None:
    """
    Sets a function find(scheme) that returns (id, secret, token, bearer, expires), None, or a text that states which credentials are missing. Any thread may call the function.
    """

class CachedObject:
    """A cached copy of a stored object."""

    @property
    def copy(self) -> str:
        """Name of the cache entry."""

    @property
    def name(self) -> str:
        """Full name of the object; empty if the cache entry is damaged."""

    @property
    def bytes(self) -> int: ...

    @property
    def used_ns(self) -> int:
        """Time at which the copy was last opened, in nanoseconds since 1970."""

    @property
    def in_use(self) -> bool:
        """Whether a process currently has the copy open."""

class CacheContents:
    """The contents of a cache."""

    @property
    def objects(self) -> list[CachedObject]: ...

    @property
    def disk_bytes(self) -> int:
        """Disk space used by the cache folder, in bytes."""

class CacheRemoval:
    """Result of removing copies from a cache."""

    @property
    def objects(self) -> int: ...

    @property
    def in_use(self) -> int:
        """Number of copies that were not removed because they are being read."""

    @property
    def disk_bytes(self) -> int:
        """Disk space used by the cache folder after the removal, in bytes."""

def list_cache(directory: str) -> CacheContents: ...

def verify_copy(directory: str, copy: str) -> str:
    """
    Checks a cached copy. Returns a description of the problem, or an empty string if the copy is valid.
    """

def prune_cache(directory: str, bytes: int) -> CacheRemoval: ...

def clear_cache(directory: str) -> CacheRemoval: ...

class NetworkHost:
    """Statistics of this process's reads from one host."""

    @property
    def name(self) -> str:
        """Host name and port."""

    @property
    def requests(self) -> int: ...

    @property
    def connections(self) -> int:
        """Number of connections opened for these requests."""

    @property
    def bytes(self) -> int:
        """Total size of completed response bodies, in bytes."""

    @property
    def latency_s(self) -> float:
        """
        Recent time to the first byte of a response, in seconds; 0 if no response was measured.
        """

    @property
    def bytes_per_s(self) -> float:
        """
        Recent throughput of one response after its first byte; 0 if no response was measured.
        """

def network_hosts() -> list[NetworkHost]:
    """
    Returns the hosts that this process has sent requests to, ordered by name.
    """

class StoredObject:
    """A stored object that any thread may read."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def stamp(self) -> int:
        """A number that changes whenever the object changes."""

    def read(self, offset: int, most: int) -> bytes:
        """
        Reads at most `most` bytes, starting at `offset`. Raises StorageError if reading fails.
        """

    def check_unchanged(self) -> None:
        """Raises StorageError if the object has changed since it was opened."""

class StoredSource:
    """The stored objects of a source. Object names are bytes."""

    def __init__(self, source: str) -> None: ...

    @property
    def names(self) -> list[bytes]:
        """
        The shards, or a single folder, in order. Secrets are removed from URLs.
        """

    def shards(self) -> StoredSource:
        """
        Returns `names`, with each folder of tars written by `feedline pack` replaced by its shards. Raises ConfigError if packing did not finish, DataError if a manifest is damaged, and StorageError if it cannot be read.
        """

    @property
    def is_remote(self) -> bool: ...

    def is_folder(self, name: bytes) -> bool: ...

    def object(self, name: bytes) -> StoredObject:
        """
        Opens one of `names`, or an object in one of the folders. Raises StorageError if it cannot be opened.
        """

class ObjectFolder:
    """A writable folder of objects at an s3:// or gs:// URL. Thread-safe."""

    def __init__(self, url: str) -> None: ...

    @property
    def url(self) -> str:
        """The URL without a trailing slash."""

    def entries(self) -> list[tuple[str, int, str, bool]]:
        """
        Returns (name, size in bytes, ETag, whether it is a folder) for each entry. Raises StorageError.
        """

    def put(self, name: str, content: bytes) -> str:
        """Stores an object and returns its ETag. Raises StorageError."""

    def upload(self, file: str, name: str) -> str:
        """
        Uploads a local file, in parts if it is large. Returns the ETag. Raises StorageError.
        """

    def cancel(self) -> None:
        """Cancels calls in other threads, which return within seconds."""

    def remove(self, name: str) -> None: ...

    def abort_unfinished(self, names: Sequence[str]) -> int:
        """
        Aborts unfinished uploads to these names, and returns the number of aborted uploads.
        """

def crc32c(content: bytes) -> int: ...

def pin_hub(url: str) -> str:
    """
    Returns an hf://datasets/ URL with the commit of its revision and, if the dataset was renamed, its new name. Raises ConfigError if the URL does not name a dataset, and StorageError if the Hub refuses.
    """

def list_hub(pinned: str) -> list[tuple[str, int]]:
    """
    Returns (path in the repository, size in bytes) of all files below a result of pin_hub(), sorted by path. Raises StorageError.
    """

def card_as_json(yaml: str) -> str:
    """
    Converts YAML to JSON, with all scalars as strings except booleans and nulls. Raises DataError.
    """

def load_plugin(path: str, formats: list[str] = [], operations: list[str] = []) -> tuple[str, list[str], list[str], list[str], list[str]]: ...

def loaded_plugins() -> list[tuple[str, list[str], list[str], list[str], list[str]]]: ...

def reads_extension(extension: str) -> bool: ...

def set_test_conditions(conditions: dict[str, Any]) -> None: ...

def test_conditions() -> dict[str, Any]: ...
