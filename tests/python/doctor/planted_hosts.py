# SPDX-License-Identifier: Apache-2.0
"""Machines with one problem each, and machines without problems."""

from __future__ import annotations

from dataclasses import replace

from made_hosts import (
    DRIVER,
    GB,
    GPU,
    GPU_HOST,
    GROUP,
    IN_GROUP,
    LINK,
    PLACE,
    Host,
    allowed,
    cpus,
    limits,
    meminfo,
    pressure,
)

from feedline.doctor.examination import Request

TINY = (64 * 2**20, 64 * 2**20, 1000, 999)
DOCKER = {".dockerenv": ""}
SPINS = {"sys/dev/block/8:1/queue/rotational": "1\n", "sys/dev/block/8:1/device/model": "ST8000NM000A\n"}
EBS = {"sys/dev/block/8:1/queue/rotational": "0\n", "sys/dev/block/8:1/device/model": "Amazon Elastic Block Store\n"}
NFS = "nfs4 server:/export rw,vers=4.2,rsize=1048576,hard"
SSD = {"sys/dev/block/8:1/queue/rotational": "0\n"}
MANY = {f"{i:05d}.jpg": 110_000 for i in range(10_001)}
GUIDE = Request(workers=16, prefetch=5, batch_bytes=500_000_000)  # the size in the well-known example: 40 GB
BIG = {**cpus(32), "proc/meminfo": meminfo(MemTotal=256 * GB, MemAvailable=240 * GB)}

# the code that must be reported first, by problem
PLANTED: dict[str, tuple[str, Host]] = {
    "the driver and its library disagree": ("gpu_unusable", Host({**LINK, **DRIVER}, trouble="NVML: version mismatch")),
    "a container that lost its GPU": (
        "gpu_unusable",
        Host({**LINK, **DRIVER, **DOCKER}, trouble="NVML: unknown error"),
    ),
    "docker run without --gpus": ("gpu_not_passed", Host({**LINK, **DRIVER, **DOCKER, "dev/nvidia0": None})),
    "a pod without a GPU": (
        "gpu_not_passed",
        Host({**DRIVER, "dev/nvidia0": None}, environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}),
    ),
    "CUDA_VISIBLE_DEVICES is empty": ("gpu_hidden", GPU_HOST.but(environment={"CUDA_VISIBLE_DEVICES": ""})),
    "CUDA_VISIBLE_DEVICES names GPU 7": ("gpu_hidden", GPU_HOST.but(environment={"CUDA_VISIBLE_DEVICES": "7"})),
    "the machine is full": ("memory_low", Host({"proc/meminfo": meminfo(MemAvailable=1 * GB)})),
    "the container is full": (
        "memory_low",
        Host({**IN_GROUP, f"{GROUP}/memory.max": f"{16 * GB}\n", f"{GROUP}/memory.current": f"{15_800_000_000}\n"}),
    ),
    "/dev/shm is full": ("shared_memory_full", Host(spaces={"dev/shm": (32 * GB, 1 * GB, 8_000_000, 7_000_000)})),
    "the launcher binds to one core": ("one_cpu", Host({"proc/self/status": allowed("3")})),
    "the example of 40 GB": (
        "memory_needed",
        Host({**cpus(32), "proc/meminfo": meminfo(MemAvailable=38 * GB)}, request=GUIDE),
    ),
    "40 GB in a container of 32": (
        "memory_needed",
        Host(
            {**BIG, **IN_GROUP, f"{GROUP}/memory.max": f"{32 * GB}\n", f"{GROUP}/memory.current": "0\n"}, request=GUIDE
        ),
    ),
    "eight ranks of it": (
        "memory_needed",
        Host({**BIG, **cpus(256)}, request=replace(GUIDE, ranks=8), spaces={"dev/shm": (999 * GB, 999 * GB, 9, 8)}),
    ),
    "a list of 4 GB in each worker": (
        "dataset_copies",
        Host(request=Request(workers=15, batch_bytes=10_000_000, dataset_bytes=5 * GB)),
    ),
    "docker's /dev/shm, and images": (
        "shared_memory_needed",
        Host(DOCKER, spaces={"dev/shm": TINY}, request=Request(workers=4, batch_bytes=154_000_000)),
    ),
    "volumes through half the memory": (
        "shared_memory_needed",
        Host(BIG, request=Request(workers=16, prefetch=2, batch_bytes=1_100_000_000)),
    ),
    "a batch for a larger GPU": (
        "gpu_memory_needed",
        GPU_HOST.but(
            gpus=(replace(GPU, memory_bytes=8 * GB),), request=Request(workers=1, prefetch=1, batch_bytes=4 * GB)
        ),
    ),
    "96 workers and 1024 files": (
        "open_files_needed",
        Host({**cpus(128), "proc/self/limits": limits(open_files=1024)}, request=Request(96, 4, 1_000_000)),
    ),
    "16 workers on 8 CPUs": ("oversubscribed", Host(cpus(8), request=Request(workers=16, batch_bytes=1_000_000))),
    "8 ranks of 8 on 32 CPUs": ("oversubscribed", Host(cpus(32), request=Request(workers=8, batch_bytes=1, ranks=8))),
    "workers by os.cpu_count() under a quota": (
        "oversubscribed",
        Host(
            {**cpus(64), **IN_GROUP, f"{GROUP}/cpu.max": "800000 100000\n"},
            environment={"OMP_NUM_THREADS": "8"},
            request=Request(workers=64, batch_bytes=1_000_000),
        ),
    ),
    "ten ahead of video": ("prefetch_deep", Host(request=Request(4, 10, 200_000_000, batch_size=4))),
    "page-locked without a GPU": (
        "pin_without_gpu",
        Host(request=Request(workers=4, batch_bytes=1_000_000, pinned=True)),
    ),
    "no workers on 16 CPUs": ("too_few_workers", Host(request=Request(workers=0, batch_bytes=1_000_000))),
    "a hot GPU": ("gpu_slowed", GPU_HOST.but(gpus=(replace(GPU, slowed=True, temperature_c=91),))),
    "somebody else's model": ("gpu_memory_taken", GPU_HOST.but(gpus=(replace(GPU, memory_used_bytes=80 * GB),))),
    "a riser of four lanes": ("pcie_narrow", GPU_HOST.but({f"{PLACE}/current_link_width": "4\n"})),
    "a link of an older generation": (
        "pcie_slow",
        GPU_HOST.but({f"{PLACE}/current_link_speed": "8.0 GT/s PCIe\n"}, gpus=(replace(GPU, utilisation=0.97),)),
    ),
    "CPUs of the other socket": (
        "gpu_far_from_cpus",
        GPU_HOST.but({**cpus(64, nodes=2), f"{PLACE}/numa_node": "1\n", "proc/self/status": allowed("0-31")}),
    ),
    "three CPUs for four GPUs": (
        "few_cpus_per_gpu",
        GPU_HOST.but({"proc/self/status": allowed("0-2")}, gpus=tuple(replace(GPU, index=i) for i in range(4))),
    ),
    "a quota of 8 among 64": ("cpu_quota", Host({**cpus(64), **IN_GROUP, f"{GROUP}/cpu.max": "800000 100000\n"})),
    "a parent's quota": (
        "cpu_quota",
        Host(
            {
                **cpus(32),
                "proc/self/cgroup": "0::/box/job\n",
                f"{GROUP}/cpu.max": "400000 100000\n",
                f"{GROUP}/job/cpu.max": "max 100000\n",
            }
        ),
    ),
    "64 threads of OpenMP on 16": ("threads_variables", Host(environment={"OMP_NUM_THREADS": "64"})),
    "CUDA_LAUNCH_BLOCKING": ("debug_variables", GPU_HOST.but(environment={"CUDA_LAUNCH_BLOCKING": "1"})),
    "a debugging allocator": ("debug_variables", Host(environment={"PYTHONMALLOC": "malloc_debug"})),
    "docker's /dev/shm": ("shared_memory_small", Host(DOCKER, spaces={"dev/shm": TINY})),
    "swapping": ("swap_in_use", Host({"proc/meminfo": meminfo(MemAvailable=5 * GB, SwapFree=1 * GB)})),
    "killed for memory before": (
        "oom_kills",
        Host({**IN_GROUP, f"{GROUP}/memory.max": f"{60 * GB}\n", f"{GROUP}/memory.events": "oom 3\noom_kill 3\n"}),
    ),
    "everybody waits for memory": ("memory_pressure", Host({"proc/pressure/memory": pressure(30.0, 12.0)})),
    "a copy runs": ("io_pressure", Host({"proc/pressure/io": pressure(45.0, 20.0)})),
    "another run has the CPUs": ("machine_busy", Host({"proc/loadavg": "39.20 30.10 20.00 41/900 4712\n"})),
    "clocks held low": (
        "cpu_governor",
        Host({"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n"}),
    ),
    "256 open files": ("open_files_low", Host({"proc/self/limits": limits(open_files=256)})),
    "128 processes": ("processes_low", Host({"proc/self/limits": limits(processes=128)})),
    "a login node's limit of addresses": (
        "address_space_limit",
        Host({"proc/self/limits": limits(address_space=16 * GB)}),
    ),
    "InfiniBand and 64 kB": (
        "locked_memory_limit",
        GPU_HOST.but(
            {"sys/class/infiniband/mlx5_0/node_type": "1: CA\n", "proc/self/limits": limits(locked_memory=65536)}
        ),
    ),
    "strict promises of memory": (
        "commit_limit",
        Host(
            {"proc/sys/vm/overcommit_memory": "2\n", "proc/meminfo": meminfo(CommitLimit=40 * GB, Committed_AS=39 * GB)}
        ),
    ),
    "no inodes": ("inodes_low", Host(spaces={"tmp": (200 * GB, 90 * GB, 12_000_000, 120)})),
    "no space": ("disk_full", Host(spaces={"tmp": (200 * GB, 120_000_000, 12_000_000, 11_000_000)})),
    "a killed run's shared memory": ("leftovers", Host(left={"dev/shm/torch_999_1_2": (70 * 2**20, 26.0)})),
    "s3fs": ("object_mount", Host(mount="fuse.s3fs s3fs rw", source_files={"a.tar": 10**6})),
    "mountpoint-s3": ("object_mount", Host(mount="fuse mountpoint-s3 rw", source_files={"a.tar": 10**6})),
    "NFS that does not cache": (
        "network_storage",
        Host(mount="nfs4 server:/export rw,noac,rsize=8192", source_files={"a.tar": 10**6}),
    ),
    "NFS": ("network_storage", Host(mount=NFS, source_files={"a.tar": 20 * GB})),
    "a disk that spins": ("spinning_disk", Host(SPINS, mount="ext4 /dev/sda1 rw", source_files={"a.tar": 10**6})),
    "an EBS volume": ("cloud_volume", Host(EBS, mount="ext4 /dev/nvme1n1 rw", source_files={"a.tar": 20 * GB})),
    "data in the image": ("overlay_source", Host(mount="overlay overlay rw", source_files={"a.tar": 20 * GB})),
    "staged in memory": ("staged_in_memory", Host(mount="tmpfs tmpfs rw", source_files={"a.tar": 40 * GB})),
    "photos on NFS": ("small_files", Host(mount=NFS, source_files=MANY)),
    "16 workers on 8 cores with 16 threads": ("oversubscribed", Host(request=Request(workers=16, batch_bytes=10**6))),
    "a dataset that fits": (
        "preload_fits",
        Host({"sys/dev/block/8:1/queue/rotational": "0\n"}, mount="ext4 /dev/sda1 rw", source_files={"a.tar": 6 * GB}),
    ),
}

GPUS = tuple(replace(GPU, index=i) for i in range(8))
SOUND: dict[str, Host] = {
    "a workstation": Host(),
    "with a GPU": GPU_HOST,
    "with eight": GPU_HOST.but({**cpus(128, nodes=2)}, gpus=GPUS),
    "a GPU that computes at full speed": GPU_HOST.but(
        {f"{PLACE}/current_link_speed": "32.0 GT/s PCIe\n"}, gpus=(replace(GPU, utilisation=0.99),)
    ),
    "a GPU on the near socket": GPU_HOST.but(
        {**cpus(64, nodes=2), f"{PLACE}/numa_node": "0\n", "proc/self/status": allowed("0-31")}
    ),
    "a laptop of two CPUs": Host(cpus(2)),
    "one CPU is all there is": Host({**cpus(1), "proc/self/status": allowed("0")}),
    "no swap": Host({"proc/meminfo": meminfo(SwapTotal=0, SwapFree=0)}),
    "swapped long ago": Host({"proc/meminfo": meminfo(SwapFree=5 * GB)}),
    "a container that counts its CPUs": Host(
        {**DOCKER, **cpus(64), **IN_GROUP, f"{GROUP}/cpu.max": "800000 100000\n"}, environment={"OMP_NUM_THREADS": "8"}
    ),
    "a container with most of the CPUs": Host({**DOCKER, **IN_GROUP, f"{GROUP}/cpu.max": "1200000 100000\n"}),
    "a container of 16 GB": Host(
        {**DOCKER, **IN_GROUP, f"{GROUP}/memory.max": f"{16 * GB}\n", f"{GROUP}/memory.current": f"{2 * GB}\n"}
    ),
    "a full page cache": Host(
        {
            **IN_GROUP,
            f"{GROUP}/memory.max": f"{16 * GB}\n",
            f"{GROUP}/memory.current": f"{15_900_000_000}\n",
            f"{GROUP}/memory.stat": f"inactive_file {13 * GB}\n",
        }
    ),
    "an old kernel without pressure": Host({"proc/pressure/io": None, "proc/pressure/memory": None}),
    "a virtual machine that tells little": Host(
        dict.fromkeys(("proc/cpuinfo", "proc/pressure/io", "proc/loadavg", "proc/self/limits"))
    ),
    "btrfs, which counts no inodes": Host(spaces={"tmp": (200 * GB, 90 * GB, 0, 0)}),
    "files that are in use": Host(
        {"proc/4711/maps": "7f00-7f01 rw-s 00000000 00:1a 9 /dev/shm/torch_4700_1_2\n"},
        left={"dev/shm/torch_4700_1_2": (70 * 2**20, 26.0), "dev/shm/torch_4711_3_4": (70 * 2**20, 26.0)},
    ),
    "files of a run that begins": Host(left={"dev/shm/torch_999_1_2": (70 * 2**20, 0.1)}),
    "a plan that fits": GPU_HOST.but(
        request=Request(workers=8, prefetch=2, batch_bytes=154_000_000, batch_size=256, pinned=True)
    ),
    "a plan of twelve workers": Host(request=Request(workers=12, batch_bytes=1_000_000)),
    "a large dataset on SSD": Host(SSD, mount="ext4 /dev/sda1 rw", source_files={"a.tar": 900 * GB}),
    "governor performance": Host({"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n"}),
}
