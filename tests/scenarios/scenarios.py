# SPDX-License-Identifier: Apache-2.0
"""The planted scenarios: each script, and the causes that a diagnosis of it must report.

The rules were written for the first set, and without looking at the second: see README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from limits import Limits

TWO_RANKS = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29713")
SCRIPTS, HELD_OUT_SCRIPTS = Path(__file__).parent / "scripts", Path(__file__).parent / "held_out"
BLIND_SCRIPTS, PLANTED_SCRIPTS = Path(__file__).parent / "blind", Path(__file__).parent / "planted"


@dataclass(frozen=True)
class Scenario:
    script: str
    causes: tuple[str, ...]  # the largest first; all must be reported
    also: tuple[str, ...] = ()  # causes that are also true for the script
    fast: bool = False  # runs in tools/test
    launcher: tuple[str, ...] = ()  # arguments of Python before the script
    stand_in: bool = False  # its device is scripts/stand_in_device.py, so only effects on a simulated GPU are shown
    folder: Path = SCRIPTS
    limits: Limits | None = None  # of the container in which the whole diagnosis runs
    budget: float = 0.0  # seconds of experiments
    mended: tuple[str, ...] = ()  # causes that it omits if FEEDLINE_SCENARIO_MENDED names them
    unlimited: bool = False  # a container without those limits removes a cause
    free_cpus: float = 0.0  # with fewer, its cause does not exist

    @property
    def path(self) -> Path:
        return self.folder / f"{self.script}.py"


SCENARIOS = (
    Scenario("python_main_process", ("python_main_process",), fast=True),
    Scenario("python_stream_main_process", ("python_main_process",), mended=("python_main_process",)),
    Scenario("cpu_decode", ("cpu_decode",), ("cpu_transform",), fast=True, mended=("cpu_decode",)),
    Scenario("cpu_transform", ("cpu_transform",), fast=True, mended=("cpu_transform",)),
    Scenario("storage_latency", ("storage_latency",), fast=True),
    Scenario("sleep_and_small_file", ("blocked_outside_files",), fast=True, mended=("blocked_outside_files",)),
    Scenario("blocked_by_lock", ("blocked_outside_files",), fast=True),
    Scenario("blocked_by_socket", ("blocked_outside_files",), fast=True),
    Scenario("collate", ("collate",), fast=True, mended=("collate",)),
    Scenario("worker_handover", ("worker_handover",), ("cpu_transform",), fast=True, mended=("worker_handover",)),
    Scenario(
        "tiny_in_memory", ("worker_handover",), ("worker_startup", "python_main_process", "cpu_transform", "collate")
    ),
    Scenario("compute_bound", ("compute_bound",), fast=True),
    Scenario("compute_bound_with_workers", ("compute_bound",)),
    Scenario("too_few_workers", ("too_few_workers",), fast=True, free_cpus=1.8),
    Scenario("too_few_workers_spawned", ("too_few_workers",), ("worker_startup",)),
    Scenario("oversubscribed", ("oversubscribed",), ("cpu_transform", "worker_startup"), fast=True),
    Scenario("worker_startup", ("worker_startup",), ("epoch_border",), fast=True),
    Scenario("epoch_border", ("epoch_border",), fast=True, mended=("epoch_border",)),
    Scenario("straggling_sample", ("straggling_sample",), fast=True, mended=("straggling_sample",)),
    Scenario(
        "loop_synchronisation",
        ("loop_synchronisation",),
        ("compute_bound", "worker_handover"),
        fast=True,
        mended=("loop_synchronisation",),
    ),
    Scenario(
        "mixed_storage_and_transform",
        ("storage_latency", "cpu_transform"),
        ("too_few_workers",),
        mended=("cpu_transform",),  # the promise for the other cause is that of more workers
    ),
    Scenario(
        "mixed_decode_and_collate", ("cpu_decode", "collate"), ("cpu_transform",), mended=("cpu_decode", "collate")
    ),
    Scenario("nested_pool", ("nested_pool",), mended=("nested_pool",)),
    Scenario("drop_in_transform", ("cpu_transform",), mended=("cpu_transform",)),
    Scenario("mixed_startup_and_border", ("worker_startup", "epoch_border"), mended=("epoch_border",)),
    Scenario(
        "mixed_straggler_and_main_process", ("straggling_sample", "python_main_process"), mended=("straggling_sample",)
    ),
    Scenario("cpu_decode_torchvision", ("cpu_decode",), ("cpu_transform",), mended=("cpu_decode",)),
    Scenario("stream_storage_latency", ("storage_latency",), mended=("storage_latency",)),
    Scenario("unpinned_copy", ("unpinned_copy",), ("compute_bound",), stand_in=True),
    Scenario("blocking_copy", ("blocking_copy",), ("compute_bound",), stand_in=True),
    Scenario("host_to_device", ("host_to_device",), ("compute_bound",), stand_in=True),
    Scenario("mixed_storage_and_copy", ("storage_latency", "unpinned_copy"), ("too_few_workers",), stand_in=True),
    Scenario("own_decode", ("cpu_decode",), ("cpu_transform",), mended=("cpu_decode",)),
    Scenario("own_too_few_threads", ("too_few_workers",), mended=("too_few_workers",)),
    Scenario("own_slow_storage", ("storage_latency",), mended=("storage_latency",)),
    Scenario("own_compressed_blocks", ("compressed_blocks",), mended=("compressed_blocks",)),
    Scenario("own_compute_bound", ("compute_bound",)),
    Scenario("lowered_decode", ("cpu_decode",), ("cpu_transform",)),
    Scenario(
        "straggling_rank",
        ("straggling_rank",),
        ("blocked_outside_files", "python_main_process"),  # a sleep simulates its slow storage
        launcher=TWO_RANKS,
        mended=("straggling_rank",),
    ),
    Scenario(
        "cpu_quota",
        ("cpu_quota",),
        ("cpu_transform", "oversubscribed"),
        limits=Limits(cpus=0.3),
        mended=("cpu_quota",),
        unlimited=True,
    ),
    Scenario(
        "storage_bandwidth",
        ("storage_bandwidth",),
        limits=Limits(read_bytes_per_s=24_000_000),
        budget=4.0,
        mended=("storage_bandwidth",),
    ),
    Scenario("small_files", ("small_files",), limits=Limits(reads_per_s=400), budget=4.0, mended=("small_files",)),
    Scenario(
        "shared_memory_limit",
        ("shared_memory_limit",),
        ("compute_bound",),
        fast=True,
        limits=Limits(shared_memory_bytes=56 << 20),
        mended=("shared_memory_limit",),
        unlimited=True,
    ),
    Scenario(
        "memory_pressure",
        ("memory_pressure",),
        ("storage_latency", "worker_startup"),
        limits=Limits(memory_bytes=500 << 20),
        mended=("memory_pressure",),
    ),
)


def _held_out(script: str, *causes: str, also: tuple[str, ...] = (), launcher: tuple[str, ...] = ()) -> Scenario:
    return Scenario(script, causes, also, launcher=launcher, folder=HELD_OUT_SCRIPTS)


HELD_OUT = (
    _held_out("spectra_from_memmap", "cpu_transform"),
    _held_out("table_rows", "python_main_process"),
    _held_out("png_scans", "cpu_decode", also=("cpu_transform",)),
    _held_out("ragged_tokens", "collate"),
    _held_out("accumulated_gradients", "compute_bound"),
    _held_out("validation_in_epoch", "blocked_outside_files"),  # threading.Event().wait()
    _held_out("zipped_loaders", "too_few_workers"),
    _held_out("trainer_with_reloads", "worker_startup"),
    _held_out("two_ranks_remote", "blocked_outside_files", also=("worker_startup",), launcher=TWO_RANKS),
    _held_out("json_lines", "cpu_transform"),
    _held_out("sampler_in_python", "python_main_process"),
    _held_out("one_huge_photo", "straggling_sample"),
    _held_out("strings_to_the_loop", "worker_handover", also=("cpu_transform",)),
    _held_out("twelve_workers", "oversubscribed", also=("cpu_transform", "worker_startup")),
    _held_out("executor_per_sample", "nested_pool", also=("cpu_transform",)),
    _held_out("weighted_epochs", "epoch_border"),
    _held_out("own_tokens_model", "compute_bound"),
    _held_out("own_tar_shards", "cpu_decode", also=("cpu_transform",)),
)


def _blind(
    script: str,
    *causes: str,
    also: tuple[str, ...] = (),
    launcher: tuple[str, ...] = (),
    limits: Limits | None = None,
    budget: float = 0.0,
) -> Scenario:
    return Scenario(script, causes, also, launcher=launcher, folder=BLIND_SCRIPTS, limits=limits, budget=budget)


BLIND = (
    _blind("speech_commands", "compute_bound"),
    _blind("tile_masks", "compute_bound"),
    _blind("click_tables", "compute_bound"),
    _blind("two_views", "compute_bound"),
    _blind("forecast_windows", "cpu_quota", also=("cpu_transform",), limits=Limits(cpus=0.5)),
    _blind("upscaled_icons", "cpu_transform"),
    _blind("graph_neighbours", "nested_pool", "collate", also=("cpu_transform",)),
    _blind("lanes_and_cars", "worker_handover"),
    _blind("plates_in_folds", "worker_startup", "cpu_decode", also=("epoch_border",)),
    _blind("gzip_events", "too_few_workers"),
    _blind("record_store", "straggling_sample"),
    _blind("curriculum", "epoch_border"),
    _blind("uneven_ranks", "straggling_rank", also=("python_main_process",), launcher=TWO_RANKS),
    # opening a shard is one slow sample in 128, and more workers would open more shards at a time
    _blind(
        "remote_shards",
        "blocked_outside_files",  # a sleep instead of a store
        "loop_synchronisation",
        also=("too_few_workers", "straggling_sample"),
    ),
    _blind("repacked_loader", "python_main_process"),
    _blind("thumbnails", "small_files", limits=Limits(reads_per_s=300), budget=4.0),
)


def _planted(
    script: str,
    cause: str,
    also: tuple[str, ...] = (),
    launcher: tuple[str, ...] = (),
    limits: Limits | None = None,
    budget: float = 0.0,
    fix: str = "fixed",
) -> Scenario:
    """`fix`: "fixed" is the script's second form, "workers" what --apply does, "unlimited" another container."""
    return Scenario(
        script,
        (cause,),
        also,
        launcher=launcher,
        folder=PLANTED_SCRIPTS,
        limits=limits,
        budget=budget,
        mended=(cause,) if fix in ("fixed", "unlimited") else (),
        unlimited=fix == "unlimited",
    )


PLANTED = (
    _planted("border_short_epochs", "epoch_border"),
    _planted("border_validation_batches", "epoch_border"),
    _planted("collate_mixup", "collate"),
    _planted("collate_padding", "collate"),
    _planted("decode_large_jpegs", "cpu_decode", also=("cpu_transform",)),
    _planted("decode_png_masks", "cpu_decode", also=("cpu_transform",)),
    _planted(
        "full_shared_memory",
        "shared_memory_limit",
        also=("compute_bound",),
        limits=Limits(shared_memory_bytes=64 << 20),
        fix="none",
    ),
    _planted("handover_annotations", "worker_handover"),
    _planted("handover_graphs", "worker_handover"),
    _planted("http_requests", "remote_storage"),
    _planted("http_urllib", "remote_storage"),
    _planted("key_value_server", "blocked_outside_files"),
    _planted("large_arrays_cold", "storage_bandwidth", limits=Limits(read_bytes_per_s=300_000_000), budget=4.0),
    _planted("main_process_images", "python_main_process", fix="workers"),
    _planted("main_process_lines", "python_main_process", fix="workers"),
    _planted("many_workers", "oversubscribed", also=("cpu_transform", "worker_startup")),
    _planted(
        "memory_too_small",
        "memory_pressure",
        also=("storage_latency", "storage_bandwidth"),
        limits=Limits(memory_bytes=500 << 20),
        fix="unlimited",
    ),
    _planted("one_worker_images", "too_few_workers", fix="workers"),
    _planted("photos_from_a_slow_disk", "storage_bandwidth", limits=Limits(reads_per_s=60), budget=4.0),
    _planted("pool_in_collate", "nested_pool", also=("collate",)),
    _planted("pool_per_sample", "nested_pool", also=("cpu_transform",)),
    _planted("program_per_sample", "blocked_outside_files", also=("cpu_transform",)),
    _planted("quota_of_half_a_cpu", "cpu_quota", also=("cpu_transform",), limits=Limits(cpus=0.6), fix="unlimited"),
    _planted(
        "quota_of_one_cpu",
        "cpu_quota",
        also=("cpu_decode", "cpu_transform", "oversubscribed"),
        limits=Limits(cpus=1.0),
        fix="unlimited",
    ),
    _planted("random_rows_of_a_file", "storage_latency", budget=4.0),
    _planted("rate_limited", "blocked_outside_files"),
    _planted("sampler_recomputes_weights", "python_main_process"),
    _planted("shared_lock", "blocked_outside_files"),
    _planted("slow_step", "compute_bound", fix="none"),
    _planted("startup_spawn", "worker_startup", also=("epoch_border",)),
    _planted("startup_vocabulary", "worker_startup", also=("epoch_border",)),
    _planted("straggler_panorama", "straggling_sample"),
    _planted("straggler_retry", "straggling_sample"),
    _planted("threads_in_workers", "oversubscribed", also=("cpu_transform", "worker_startup")),
    _planted("throttled_disk", "storage_bandwidth", limits=Limits(read_bytes_per_s=40_000_000), budget=4.0),
    _planted("tiny_files", "small_files", budget=4.0),
    _planted("tiny_images_of_classes", "small_files", also=("cpu_decode",), limits=Limits(reads_per_s=500), budget=4.0),
    _planted("transform_pairs_in_python", "cpu_transform"),
    _planted("transform_spectrogram", "cpu_transform"),
    _planted("one_slow_rank", "straggling_rank", also=("blocked_outside_files",), launcher=TWO_RANKS),
)
