# SPDX-License-Identifier: Apache-2.0
"""Calculates the host's figures from sampled counters."""

import pytest

from feedline.profiler.dataset_files import DatasetFiles
from feedline.profiler.experiments import Comparison, DiskProbe, Experiments
from feedline.profiler.recordings import Recording
from feedline.profiler.summary.host_summary import host_summary, missing_of_disk, window_of

S = 1_000_000_000
STILL = {
    "busy_ns": 0, "cpu_pressure_ns": 0, "io_pressure_ns": 0, "memory_pressure_ns": 0, "memory_events": 0,
    "available_bytes": 9, "swapped_pages": 0, "disk_reads": 0, "disk_bytes": 0, "disk_read_ns": 0,
    "shared_memory_used": 0.1, "throttled_ns": 0,
}  # fmt: skip
IDLE = {
    "parent": 1, "cpu_ns": 0, "system_ns": 0, "delay_ns": 0, "device_bytes": 0, "read_bytes": 0, "read_calls": 0,
    "minor_faults": 0, "major_faults": 0, "resident_bytes": 1, "threads": 1,
}  # fmt: skip


def recorded(host=(), worker=None, **others):
    """Ten seconds of a loop in process 7, with worker 8; `host`: how much counters have increased by then."""
    rows = [{**STILL, "time_ns": 0}, {**STILL, "time_ns": 5 * S}, {**STILL, **dict(host), "time_ns": 10 * S}]
    processes = [{**IDLE, "time_ns": t, "pid": pid} for t in (0, 10 * S) for pid in (7, 8)]
    processes[-1] |= worker or {}
    sampled = {"host": rows, "processes": processes, "memory": [], "quota_cpus": None, **others.pop("sampled", {})}
    return Recording(["x"], 0, 0, 10 * S, [], [], sampled, [], 1, **others)


def host_of(recording, **facts):
    window = window_of(recording.host, 0, 10 * S, 7, [8])
    return host_summary(recording, window, {"cpus": 4, "num_workers": 2, **facts}, 100)


def test_a_quotas_stops_are_shared_out_among_the_cpus_it_stops():
    stopped = recorded({"throttled_ns": 10 * S})  # two workers, on two CPUs, five seconds each
    assert host_of(stopped).throttled == pytest.approx(0.5)
    assert host_of(stopped, num_workers=0).throttled == pytest.approx(1.0)
    assert host_of(recorded({"throttled_ns": 99 * S})).throttled == 1.0
    assert host_of(recorded({"throttled_ns": None})).throttled is None


def test_shared_memory_counts_at_its_fullest_and_memory_at_its_most():
    sampled = {"memory": [{"time_ns": 1, "bytes": 5, "exact": True}, {"time_ns": 2, "bytes": 9, "exact": False}]}
    found = host_of(recorded({"shared_memory_used": 0.95}, sampled={**sampled, "memory_limit_bytes": 100.0}))
    assert (found.shared_memory_used, found.memory_bytes, found.memory_limit_bytes) == (0.95, 9.0, 100.0)
    assert host_of(recorded({"shared_memory_used": None})).shared_memory_used == 0.1


def test_the_kernels_part_of_the_workers_cpu():
    assert host_of(recorded(worker={"cpu_ns": 4 * S, "system_ns": 3 * S})).in_kernel == pytest.approx(0.75)
    assert host_of(recorded()).in_kernel is None


def test_calls_of_read_are_counted_per_sample():
    assert host_of(recorded(worker={"read_calls": 2400})).reads_per_sample == pytest.approx(24)


def test_what_was_tried_and_which_files_there_are_is_taken_over():
    files = DatasetFiles(3, 9, 20_000, ("sda",), True, 0.25, 0.5)
    cold = Comparison("files in the page cache", "batches/s", 5, 4, 6, 10, 9, 11, 2.0, 1.8, 2.2, 3, 60_000)
    disk = DiskProbe(3, "sda", 80e6, 70e6, 90e6, 20_000, 0.5, 0.4, 0.6)
    found = host_of(recorded(files=files, experiments=Experiments(comparisons=[cold], disk=disk)))
    assert (found.files_seen, found.file_bytes, found.cached_before, found.cold_share) == (3, 20_000, 0.25, 0.5)
    assert (found.disk_ceiling_bytes_per_s, found.disk_read_bytes, found.disk_small_read_ms) == (80e6, 20_000, 0.5)
    assert host_of(recorded()).files_seen == 0


def test_a_disk_that_was_not_measured_is_missing_where_samples_come_from_it():
    files = DatasetFiles(3, 9, 20_000, ("sda",), True, 0.25, 0.5)
    reading = {"read_bytes": 1_000_000, "device_bytes": 900_000}
    refused = Experiments(disk=DiskProbe(refused="its file system is one"))
    unmeasured = recorded(worker=reading, files=files, experiments=refused)
    assert "its file system is one" in missing_of_disk(unmeasured, host_of(unmeasured))["disk"]
    quick = recorded(worker=reading, files=files)
    assert set(missing_of_disk(quick, host_of(quick))) == {"disk"}
    cached = recorded(worker={"read_bytes": 1_000_000}, files=files)
    assert missing_of_disk(cached, host_of(cached)) == {}
    measured = recorded(worker=reading, files=files, experiments=Experiments(disk=DiskProbe(3, "sda", 80e6)))
    assert missing_of_disk(measured, host_of(measured)) == {}


def test_of_several_ranks_one_is_weighed_against_its_own_share():
    """Four ranks share four CPUs; the run's counters include all of them."""
    busy = {"busy_ns": 30 * S}
    loaders = [{"local_rank": rank, "sharing_ranks": 4} for rank in (0, 1, 2, 3)]
    run = recorded(busy, worker={"cpu_ns": 20 * S, "delay_ns": 8 * S})
    alone = host_of(run)
    assert (alone.cpus, alone.used_cpus, alone.wanted_cpus, alone.others_cpus) == (4, 2.0, 2.8, 1.0)
    run.loaders = loaders
    one = host_of(run, **loaders[0])
    assert (one.cpus, one.used_cpus, one.ranks, one.sharing) == (1.0, 0.5, 4, 4)
    assert one.wanted_cpus == pytest.approx(0.7)
    assert one.others_cpus == pytest.approx(0.25), "of the CPU that others use, a quarter comes out of this share"


def test_ranks_that_are_not_watched_are_no_other_programs():
    """Each rank has its own diagnosis: the other ranks use as much CPU time, and do not count as other programs."""
    run = recorded({"busy_ns": 80 * S}, worker={"cpu_ns": 20 * S})
    run.loaders = [{"local_rank": 2, "sharing_ranks": 4}]
    one = host_of(run, **run.loaders[0])
    assert (one.cpus, one.used_cpus, one.others_cpus) == (1.0, 2.0, 0.0)


def test_ranks_that_were_bound_have_their_own_cpus():
    run = recorded(worker={"cpu_ns": 20 * S})
    run.loaders = [{"local_rank": rank, "sharing_ranks": 1} for rank in (0, 1)]
    one = host_of(run, **run.loaders[0])
    assert (one.cpus, one.used_cpus) == (4.0, 1.0)
