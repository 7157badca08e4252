# SPDX-License-Identifier: Apache-2.0
"""Measures the GPU's activity: busy and idle time, copies and their overlap with kernels, and Tensor Core use."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Trace
from .intervals import EMPTY, Intervals, complement, covered_within, difference, intersection, join, total, union

_MOST_GAPS = 10
_COPY = re.compile(r"Memcpy (?P<kind>\w+)(?: \((?P<source>\w+) -> (?P<target>\w+)\))?")
COLLECTIVE = re.compile(r"^nccl|^rccl|ncclDevKernel|ncclKernel|^void ncclKernel", re.IGNORECASE)
# Names of Tensor Core kernels in cuBLAS, cuDNN, CUTLASS and Triton: the shapes of their instructions (m8n8k4, m16n8k8,
# m16n8k16, ...) and of warp group instructions, "tensorop", "hmma", "imma". Kernels without such a name may use Tensor
# Cores, too.
_TENSOR_CORES = re.compile(
    r"[hsicd]?_?(?:884|1688|16816|16832|8816|8832|64x\d+x\d+)(?:gemm|cudnn|fprop|dgrad|wgrad|tf32|bf16|_|$)"
    r"|tensorop|hmma|imma|qmma|gmma|wgmma|tensor_?core|nvjet|flash_(?:fwd|bwd)|fmha|sm(?:80|86|89|90|100|120)_xmma",
    re.IGNORECASE,
)
_MATRIX = re.compile(
    r"gemm|gemv|conv|[hs]?cudnn_\d+x|fprop|dgrad|wgrad|xmma|cutlass|nvjet|winograd|flash_(?:fwd|bwd)|fmha", re.I
)
_NOT_MATRIX = re.compile(r"splitKreduce|convertTensor|nchwToNhwc|nhwcToNchw|computeOffsets|elementwise|convert_", re.I)


class Device:
    """The events of one GPU within the steps.

    Attributes:
        number: device index in torch.
        window: the time from the start of the first step to the end of the last step.
        kernels, copies, busy: intervals in which kernels ran, in which copies or memsets ran, and in which any of these
        ran.
    """

    def __init__(self, trace: Trace, number: Any, window: tuple[int, int]) -> None:
        self.trace, self.number, self.window = trace, number, window
        threads = {i for i, (device, _) in enumerate(trace.threads) if device == number}
        self.rows = {kind: _rows_on(trace, kind, threads, window) for kind in ("kernel", "memcpy", "memset")}
        self.kernels = self._covered("kernel")
        self.copies = join(self._covered("memcpy"), self._covered("memset"))
        self.busy = join(self.kernels, self.copies)
        self.idle = complement(self.busy, *window)

    def _covered(self, kind: str, where: NDArray[np.bool_] | None = None) -> Intervals:
        column, rows = self.trace[kind], self.rows[kind]
        rows = rows if where is None else rows[where]
        clip = (np.clip(times[rows], *self.window) for times in (column.start, column.end))
        return union(*clip)

    def copy_kinds(self) -> list[dict[str, Any]]:
        """Returns one row per kind of copy: count, bytes, GB/s, and the share of its time during which kernels ran."""
        column, rows = self.trace["memcpy"], self.rows["memcpy"]
        result = []
        for name in np.unique(column.name[rows]):
            which = column.name[rows] == name
            parts = _COPY.match(self.trace.names[name])
            when = self._covered("memcpy", which)
            size = int(column.size[rows][which].sum())
            spent = int((column.end - column.start)[rows][which].sum())
            result.append(
                {
                    "name": self.trace.names[name],
                    "kind": parts.group("kind") if parts else None,
                    "source": parts.group("source") if parts else None,
                    "target": parts.group("target") if parts else None,
                    "count": int(which.sum()),
                    "bytes": size,
                    "ms": spent / 1e6,
                    "GB_per_s": size / spent if spent else None,
                    "overlapped_share": total(intersection(when, self.kernels)) / max(1, total(when)),
                }
            )
        return sorted(result, key=lambda row: -row["ms"])

    def exposed(self, kind: str, source: str | None = None) -> Intervals:
        """Returns the intervals in which copies of this kind (from this kind of memory) ran without a concurrent
        kernel.
        """
        rows, column = self.rows["memcpy"], self.trace["memcpy"]

        def accepts(name: str) -> bool:
            parts = _COPY.match(name)
            return bool(parts and parts.group("kind") == kind and source in (None, parts.group("source")))

        when = self._covered("memcpy", self.trace.names_where(accepts)[column.name[rows]]) if len(rows) else EMPTY
        return difference(when, self.kernels)

    def kernels_where(self, pattern: re.Pattern[str]) -> Intervals:
        """Returns the intervals in which kernels ran whose names match `pattern`."""
        column, rows = self.trace["kernel"], self.rows["kernel"]
        return self._covered("kernel", self.trace.names_where(pattern.search)[column.name[rows]])

    def tensor_cores(self) -> dict[str, Any]:
        """Returns shares of the kernels' time by name; ``plain_matrix_ms`` is the time of matrix products and
        convolutions without Tensor Cores.
        """
        column, rows = self.trace["kernel"], self.rows["kernel"]
        spent = (column.end - column.start)[rows]
        names = column.name[rows]
        tensor = self.trace.names_where(_TENSOR_CORES.search)[names]
        matrix = self.trace.names_where(_is_product)[names] | tensor
        everything, products = int(spent.sum()), int(spent[matrix].sum())
        return {
            "inferred_from": "names of kernels",
            "share_of_kernel_time": int(spent[tensor].sum()) / everything if everything else None,
            "share_of_matrix_time": int(spent[tensor].sum()) / products if products else None,
            "matrix_share_of_kernel_time": products / everything if everything else None,
            "plain_matrix_ms": (products - int(spent[tensor].sum())) / 1e6,
        }

    def occupancy(self) -> float | None:
        """Returns the time-weighted mean of torch's occupancy estimates in percent, or None if there are none."""
        column, rows = self.trace["kernel"], self.rows["kernel"]
        percent, spent = column.occupancy[rows], (column.end - column.start)[rows]
        said = ~np.isnan(percent) & (spent > 0)
        return float((percent[said] * spent[said]).sum() / spent[said].sum()) if said.any() else None

    def gaps(self, states: dict[str, Intervals]) -> list[dict[str, Any]]:
        """Returns the longest idle periods of the GPU, with the host's main state in each."""
        if not len(self.idle):
            return []
        lengths = self.idle[:, 1] - self.idle[:, 0]
        longest = self.idle[np.argsort(-lengths, kind="stable")[:_MOST_GAPS]]
        names = list(states)
        by_state = np.stack([covered_within(states[name], longest) for name in names])
        return [
            {"at_ms": (begin - self.window[0]) / 1e6, "ms": (end - begin) / 1e6, "host": names[state]}
            for (begin, end), state in zip(longest.tolist(), by_state.argmax(axis=0).tolist(), strict=True)
        ]


def _is_product(name: str) -> bool:
    return bool(_MATRIX.search(name)) and not _NOT_MATRIX.search(name)


def devices(trace: Trace, window: tuple[int, int]) -> list[Device]:
    """Returns all GPUs that have kernels or copies within the window, busiest first."""
    found = {
        trace.threads[thread][0] for kind in ("kernel", "memcpy", "memset") for thread in np.unique(trace[kind].thread)
    }
    every = [Device(trace, number, window) for number in sorted(found, key=str)]
    return sorted((device for device in every if len(device.busy)), key=lambda device: -total(device.busy))


def _rows_on(trace: Trace, kind: str, threads: set[int], window: tuple[int, int]) -> NDArray[np.int64]:
    column = trace[kind]
    here = np.isin(column.thread, list(threads)) & (column.end > window[0]) & (column.start < window[1])
    return np.flatnonzero(here)
