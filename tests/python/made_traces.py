# SPDX-License-Identifier: Apache-2.0
"""Traces as torch.profiler writes them on a machine with a GPU, of training loops whose times are known.

The loop is played on two clocks, the host's and the GPU's, with CUDA's rules: kernels and copies of a stream follow
each other, copies from pageable memory hold the host, and a synchronisation holds it until the stream is done. Keys
and categories are those that Kineto writes since torch 1.11.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST, LAUNCH_US = 4242, 10.0
A100 = {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8, "computeMinor": 0}
GEMM_FP32, GEMM_BF16 = "ampere_sgemm_128x64_nn", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn"


@dataclass
class MadeTrace:
    """Events in the order in which they were added; times in microseconds."""

    events: list[dict[str, Any]] = field(default_factory=list)
    header: dict[str, Any] = field(
        default_factory=lambda: {
            "schemaVersion": 1,
            "deviceProperties": [A100],
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_790_000_000_000_000_000,
        }
    )
    host: float = 1000.0  # the host's clock
    streams: dict[int, float] = field(default_factory=dict)  # when each stream finishes
    ids: int = 0

    def add(self, category: str, name: str, start: float, duration: float, tid: int = HOST, **args: Any) -> None:
        device = category in ("kernel", "gpu_memcpy", "gpu_memset")
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 0 if device else HOST,
                "tid": tid,
                "ts": round(start, 3),
                "dur": round(duration, 3),
                "args": args,
            }
        )

    def launch(self, op: str, kernel: str, microseconds: float, stream: int = 7) -> None:
        """An operator that launches one kernel."""
        self.ids += 1
        start = max(self.host + LAUNCH_US / 2, self.streams.get(stream, 0.0))
        self.add("cpu_op", op, self.host, LAUNCH_US, **{"External id": self.ids})
        link = {"External id": self.ids, "correlation": self.ids}
        self.add("cuda_runtime", "cudaLaunchKernel", self.host + 2, LAUNCH_US - 4, cbid=211, **link)
        occupancy = {"est. achieved occupancy %": 50}
        self.add("kernel", kernel, start, microseconds, stream, device=0, stream=stream, **link, **occupancy)
        self.streams[stream] = start + microseconds
        self.host += LAUNCH_US

    def copy(self, size: int, microseconds: float, source: str, *, blocking: bool, stream: int = 7) -> None:
        """``batch.to("cuda", non_blocking=not blocking)``."""
        self.ids += 1
        link = {"External id": self.ids, "correlation": self.ids}
        begin = self.host
        start = max(begin + 6, self.streams.get(stream, 0.0))
        done = start + microseconds
        name = f"Memcpy HtoD ({source} -> Device)"
        rate = {"memory bandwidth (GB/s)": size / microseconds / 1000}
        self.add("gpu_memcpy", name, start, microseconds, stream, device=0, stream=stream, bytes=size, **link, **rate)
        self.streams[stream] = done
        self.host = done + 1 if source == "Pageable" else begin + LAUNCH_US
        self.add("cuda_runtime", "cudaMemcpyAsync", begin + 3, self.host - begin - 4, cbid=41, **link)
        if blocking:
            self.synchronise("cudaStreamSynchronize", stream, self.ids)
        self.add("cpu_op", "aten::copy_", begin + 2, self.host - begin - 1, **{"External id": self.ids})
        self.add("cpu_op", "aten::to", begin, self.host - begin + 1, **{"External id": self.ids + 1_000_000})
        self.host += 2

    def item(self, function: str | None = None, stream: int = 7) -> None:
        """``loss.item()``, in the Python function `place`."""
        self.ids += 1
        begin = self.host
        start = max(begin + 5, self.streams.get(stream, 0.0))
        link = {"External id": self.ids, "correlation": self.ids}
        name = "Memcpy DtoH (Device -> Pageable)"
        self.add("gpu_memcpy", name, start, 1.5, stream, device=0, stream=stream, bytes=4, **link)
        self.streams[stream] = start + 1.5
        self.add("cuda_runtime", "cudaMemcpyAsync", begin + 3, 4, cbid=41, **link)
        self.host += 8
        self.synchronise("cudaStreamSynchronize", stream, self.ids)
        self.add("cpu_op", "aten::_local_scalar_dense", begin + 1, self.host - begin, **link)
        self.add("cpu_op", "aten::item", begin, self.host - begin + 2, **{"External id": self.ids + 1_000_000})
        if function is not None:
            self.add("python_function", function, begin - 5, self.host - begin + 10)
            self.add("python_function", "torch/_tensor.py(1): wrapped", begin - 3, self.host - begin + 6)
        self.host += 5

    def synchronise(self, call: str, stream: int, link: int) -> None:
        done = max(self.host + 1, self.streams.get(stream, 0.0) + 2)
        self.add("cuda_runtime", call, self.host, done - self.host, cbid=131, **{"External id": link})
        self.host = done

    def write(self, path: Path) -> Path:
        text = json.dumps({**self.header, "traceEvents": self.events, "traceName": str(path)}, indent=1)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        return path


def loop(
    steps: int = 6,
    *,
    loader_us: float = 20.0,
    iterator: str = "_MultiProcessingDataLoaderIter",
    kernels: int = 20,
    kernel_us: float = 100.0,
    kernel: str = GEMM_BF16,
    copy_us: float = 0.0,
    source: str = "Pinned",
    blocking: bool = False,
    copy_stream: int = 7,
    items: int = 0,
    function: str | None = None,
    collective_us: float = 0.0,
    rank: int | None = None,
    world_size: int = 1,
) -> MadeTrace:
    """A loop in which each step waits `loader_us` for its batch, copies it, launches `kernels`, and reads `items`."""
    made = MadeTrace()
    if rank is not None:
        made.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world_size}
    for number in range(10, 10 + steps):
        begin = made.host
        made.add("user_annotation", f"enumerate(DataLoader)#{iterator}.__next__", begin + 2, loader_us)
        made.host = begin + loader_us + 5
        if copy_us:
            made.copy(int(copy_us * 12_000), copy_us, source, blocking=blocking, stream=copy_stream)
        for i in range(kernels):
            made.launch("aten::mm", kernel, kernel_us)
            if i < items:
                made.item(function)
        if collective_us:
            made.launch("nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", collective_us)
        # the GPU's queue is limited: the host is at most one step ahead
        made.host = max(made.host, made.streams.get(7, 0.0) - kernels * kernel_us) + 5
        made.add("user_annotation", f"ProfilerStep#{number}", begin, made.host - begin)
    return made
