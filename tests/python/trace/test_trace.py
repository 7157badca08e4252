# SPDX-License-Identifier: Apache-2.0
"""Findings for traces of training loops whose times are known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import made_traces
import pytest
from made_traces import GEMM_BF16, GEMM_FP32, MadeTrace, loop
from running_processes import HANG_S

from feedline import trace
from feedline.trace import steps, verdicts

COMMAND = [sys.executable, "-c", "import sys; from feedline.cli import main; sys.exit(main())"]


def analysed(tmp_path: Path, *made: MadeTrace) -> dict[str, Any]:
    paths = [one.write(tmp_path / f"rank{i}.json.gz") for i, one in enumerate(made)]
    result = trace.analyse([trace.read(path) for path in paths])
    json.dumps(result)  # plain values
    return result


def causes(result: dict[str, Any]) -> list[str]:
    return [verdict["cause"] for verdict in result["verdicts"]]


def verdict(result: dict[str, Any], cause: str) -> dict[str, Any]:
    found = [verdict for verdict in result["verdicts"] if verdict["cause"] == cause]
    assert len(found) == 1, (cause, causes(result))
    low, high = found[0]["predicted_gain"]
    share = found[0]["share"]
    assert 0 <= low <= high
    assert low <= share / (1 - min(share, 0.99)) + 1e-3, "no more than all of what is lost"
    assert 0 <= found[0]["confidence"] <= 1
    return found[0]


def test_steps_and_the_loaders_share(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(steps=8, loader_us=3000, kernels=20, kernel_us=100))
    steps = result["steps"]
    assert (steps["count"], steps["source"], steps["left_out"]) == (8, "ProfilerStep", [])
    assert [step["step"] for step in steps["each"]] == list(range(10, 18))
    assert steps["loader"]["wait_ms"]["p50"] == pytest.approx(3.0)
    assert result["wait_share"] == pytest.approx(3.0 / result["step_ms"], rel=0.01)
    assert steps["loader"]["iterators"] == ["_MultiProcessingDataLoaderIter"]


def test_a_slow_loader_with_workers_is_not_guessed_at(tmp_path: Path) -> None:
    """The main process's trace does not distinguish decoding from storage: the output says so, and how to find out."""
    result = analysed(tmp_path, loop(loader_us=5000))
    assert causes(result) == []
    assert {"cpu_decode", "storage_latency", "too_few_workers"} <= {a["cause"] for a in result["abstained"]}
    assert any("feedline diagnose" in a["missing"] for a in result["abstained"])
    gpu = result["gpus"][0]
    assert gpu["idle_while"]["waiting for the loader"] == pytest.approx(gpu["idle_share"], abs=0.05)


def test_feedlines_stages_divide_the_wait(tmp_path: Path) -> None:
    """The trace of an engine whose threads decode for three quarters of their time, and read for a fifth."""
    made = loop(loader_us=5000)
    for i in range(0, int(made.host) - 100, 100):
        for stage, start, duration in (("storage", 0, 20), ("decode", 20, 76), ("transform", 96, 4)):
            made.add("feedline", stage, 1000 + i + start, duration, 77, sample=i)
    result = analysed(tmp_path, made)
    found = verdict(result, "cpu_decode")
    assert found["share"] == pytest.approx(0.76 * result["wait_share"], rel=0.01)
    assert "cpu_transform" not in causes(result)
    assert "storage_latency" in {a["cause"] for a in result["abstained"]}
    assert "too_few_workers" not in {a["cause"] for a in result["abstained"]}
    busy = {row["stage"]: row["busy_ms"] for row in result["stages"]}
    assert busy["decode"] / sum(busy.values()) == pytest.approx(0.76, rel=0.01)


def test_the_memory_that_torch_held(tmp_path: Path) -> None:
    made = loop()
    for allocated, device in ((5, 0), (9, 0), (3, 0), (7, -1)):
        args = {"Total Allocated": allocated, "Device Id": device, "Bytes": 1}
        made.events.append({"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "ts": 1, "args": args})
    assert analysed(tmp_path, made)["peak_bytes"] == {"cuda:0": 9, "cpu": 7}


def memory_event(us: float, size: int, total: int, address: int, thread: int = 1, **args: Any) -> dict[str, Any]:
    known = {"Bytes": size, "Total Allocated": total, "Addr": address, "Device Id": 0, "Device Type": 1}
    return {"ph": "i", "s": "t", "name": "[memory]", "ts": us, "pid": 1, "tid": thread, "args": known | args}


def test_memory_over_time_and_by_operator(tmp_path: Path) -> None:
    made = {
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "ts": 0, "dur": 1000, "pid": 1, "tid": 1, "args": {}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "ts": 100, "dur": 100, "pid": 1, "tid": 1, "args": {}},
            {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "ts": 2000, "dur": 500, "pid": 1, "tid": 1, "args": {}},
            memory_event(150, 600, 600, 11),
            memory_event(500, 300, 900, 12, **{"Total Reserved": 4096}),
            memory_event(2100, 500, 1400, 13),
            memory_event(1500, -300, 600, 12),  # out of order in the file
            memory_event(2100, -100, 1300, 99),  # allocated before the recording
            memory_event(2200, 200, 1500, 14),
            memory_event(3000, -500, 1000, 13, thread=2),
            memory_event(4000, -600, 400, 11, thread=2),
            memory_event(4100, 50, 450, 15, thread=2),
        ]
    }
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(made))
    (found,) = trace.analyse([trace.read(path)])["memory"]
    assert (found["device"], found["peak_bytes"], found["reserved_bytes"]) == ("cuda:0", 1500, 4096)
    assert found["peak_at_ms"] == pytest.approx(2.05) and (found["first_bytes"], found["last_bytes"]) == (600, 450)
    assert [value for _, value in found["points"]] == [600, 900, 600, 1400, 1500, 1000, 400, 450]
    rows = {
        row["name"]: (row["allocations"], row["allocated_bytes"], row["held_at_peak_bytes"])
        for row in found["operators"]
    }
    assert rows == {
        "aten::relu": (2, 700, 700),
        "aten::empty": (1, 600, 600),
        "aten::conv2d": (1, 300, 0),
        "outside operators": (1, 50, 0),
    }
    assert found["rise_per_step_bytes"] is None


def test_memory_that_rises_from_step_to_step(tmp_path: Path) -> None:
    made, rising = loop(), loop()
    ends = [window[1] for window in steps.find(trace.read(made.write(tmp_path / "plain.json"))).windows]
    for number, end in enumerate(ends):
        rising.events.append(memory_event(end / 1000 - 1, 1000, 1000 * (number + 1), number + 1))
        made.events.append(memory_event(end / 1000 - 1, 1000, 1000 * (number % 2 + 1), number + 1))
    assert analysed(tmp_path, rising)["memory"][0]["rise_per_step_bytes"] == pytest.approx(1000)
    assert analysed(tmp_path, made)["memory"][0]["rise_per_step_bytes"] is None


def test_damaged_memory_events_are_ignored(tmp_path: Path) -> None:
    made = loop()
    good = memory_event(1, 5, 5, 1)
    bad = [good | {"args": args} for args in (None, 3, {}, {"Total Allocated": "many"}, {"Total Allocated": 2**70})]
    bad += [good | {"ts": ts} for ts in (None, "now", float("inf"))]
    bad.append(memory_event(2, 2**80, 7, 1))
    made.events += [*bad, good]
    (found,) = analysed(tmp_path, made)["memory"]
    assert (found["peak_bytes"], len(found["points"])) == (5, 1)


def test_the_course_of_many_events_is_short(tmp_path: Path) -> None:
    made = loop()
    made.events += [memory_event(i, 1, i, i + 1) for i in range(5000)]
    points = analysed(tmp_path, made)["memory"][0]["points"]
    assert (
        len(points) == 120 and points[-1][1] == 4999 and [value for _, value in points] == sorted(v for _, v in points)
    )


def test_loading_in_the_main_process_is_named(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(loader_us=5000, iterator="_SingleProcessDataLoaderIter"))
    found = verdict(result, "python_main_process")
    assert found["share"] == pytest.approx(result["wait_share"])
    assert found["severity"] == "critical"
    assert "num_workers" in found["fix"]
    assert causes(result) == ["python_main_process"]


def test_a_busy_gpu_needs_no_loader(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(steps=20, loader_us=20, kernels=40, kernel_us=200))
    assert causes(result) == ["compute_bound"]
    assert verdict(result, "compute_bound")["predicted_gain"] == [0, 0]
    assert result["gpus"][0]["busy_share"] > 0.95


def test_the_idle_time_is_divided_without_a_rest(tmp_path: Path) -> None:
    for made in (loop(loader_us=3000), loop(items=5), loop(copy_us=400, source="Pageable"), loop(kernel_us=2)):
        gpu = analysed(tmp_path, made)["gpus"][0]
        assert sum(gpu["idle_while"].values()) == pytest.approx(gpu["idle_share"])
        assert gpu["busy_share"] + gpu["idle_share"] == pytest.approx(1)
        assert gpu["kernel_share"] + gpu["copy_only_share"] == pytest.approx(gpu["busy_share"])


def test_copies_from_pageable_memory(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(copy_us=800, source="Pageable", blocking=True))
    assert "unpinned" in verdict(result, "unpinned_copy")["cause"]
    assert "blocking_copy" not in causes(result), "non_blocking alone would not help here"
    copies = result["gpus"][0]["copies"][0]
    assert copies["source"] == "Pageable"
    assert copies["count"] == 6
    assert copies["bytes"] == 6 * 800 * 12_000
    assert copies["GB_per_s"] == pytest.approx(12.0)
    assert copies["overlapped_share"] == 0


def test_pinned_copies_that_the_host_waits_for(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(copy_us=800, blocking=True))
    assert "non_blocking" in verdict(result, "blocking_copy")["fix"]
    assert "unpinned_copy" not in causes(result)
    assert "host_to_device" not in causes(result)
    assert "loop_synchronisation" not in causes(result)


def test_copies_on_the_kernels_stream_and_on_their_own(tmp_path: Path) -> None:
    same = analysed(tmp_path, loop(copy_us=800, kernels=30))
    assert "host_to_device" in causes(same)
    assert same["gpus"][0]["copies"][0]["overlapped_share"] == 0
    aside = analysed(tmp_path, loop(copy_us=800, kernels=30, copy_stream=20))
    assert "host_to_device" not in causes(aside)
    assert aside["gpus"][0]["copies"][0]["overlapped_share"] > 0.8


def test_waits_for_the_gpu_are_found_with_their_line(tmp_path: Path) -> None:
    made = loop(items=8, kernels=8, kernel_us=60, function="train.py(41): log_loss")
    result = analysed(tmp_path, made)
    found = verdict(result, "loop_synchronisation")
    row = result["synchronisation"][0]
    assert (row["operator"], row["place"], row["per_step"]) == ("aten::item", "train.py(41): log_loss", 8)
    assert row["stack"] == ["train.py(41): log_loss"], "torch's own frames are left out"
    assert row["gpu_idle_after_ms"] > 0
    assert "log_loss" in found["evidence"][0]
    idle = result["gpus"][0]["idle_while"]["restarting after a wait for the GPU"]
    assert found["share"] == pytest.approx(idle, rel=0.25)


def test_a_copy_to_pageable_memory_waits_in_the_call_itself(tmp_path: Path) -> None:
    """Like .item() on many machines: cudaMemcpyAsync blocks the host, and the synchronisation ends immediately."""
    made = MadeTrace()
    for number in range(6):
        begin = number * 10_000.0
        made.add("user_annotation", f"ProfilerStep#{number}", begin, 10_000)
        made.add("cpu_op", "aten::item", begin + 100, 6000)
        made.add("cuda_runtime", "cudaMemcpyAsync", begin + 110, 5000, correlation=number)
        name = "Memcpy DtoH (Device -> Pageable)"
        made.add("gpu_memcpy", name, begin + 5100, 2, 7, device=0, stream=7, bytes=4, correlation=number)
        made.add("cuda_runtime", "cudaStreamSynchronize", begin + 5120, 5, correlation=100 + number)
        made.add("kernel", "k", begin, 5090, 7, device=0, stream=7)
        made.add("kernel", "k", begin + 9000, 1000, 7, device=0, stream=7)
    result = analysed(tmp_path, made)
    (row,) = result["synchronisation"]
    assert (row["operator"], row["copy"], row["count"]) == ("aten::item", name, 6)
    assert row["wait_ms"] == pytest.approx(6 * 5.015)
    assert verdict(result, "loop_synchronisation")["share"] == pytest.approx(0.39, abs=0.01)


def test_without_stacks_the_option_is_named(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(items=8, kernels=8, kernel_us=60))
    assert result["synchronisation"][0]["place"] is None
    assert any("with_stack=True" in line for line in verdict(result, "loop_synchronisation")["evidence"])
    assert any("with_stack=True" in line for line in result["missing"])


def test_a_wait_that_costs_nothing_is_no_cause(tmp_path: Path) -> None:
    """One .item() at the end of a long step: the GPU loses some microseconds out of milliseconds."""
    made = loop(steps=20, kernels=40, kernel_us=200)
    assert "loop_synchronisation" not in causes(analysed(tmp_path, made))
    made = loop(steps=20, kernels=1, kernel_us=8000, items=1)
    result = analysed(tmp_path, made)
    assert "loop_synchronisation" not in causes(result)
    assert result["synchronisation"][0]["count"] == 20


def waits_once(gpu_busy_until: float, *, in_loader: bool) -> MadeTrace:
    """Steps of 10 ms with one wait for the GPU at 1 ms; the GPU is idle from `gpu_busy_until` ms to 9 ms."""
    made = MadeTrace()
    for number in range(6):
        begin = number * 10_000.0
        made.add("user_annotation", f"ProfilerStep#{number}", begin, 10_000)
        start, length = (500, 7000) if in_loader else (100, 200)
        made.add(
            "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", begin + start, length
        )
        made.add("cuda_runtime", "cudaStreamSynchronize", begin + 900, 100, cbid=131, **{"External id": number})
        made.add("kernel", "k", begin, 1000 * gpu_busy_until, 7, device=0, stream=7)
        made.add("kernel", "k", begin + 9000, 1000, 7, device=0, stream=7)
    return made


def test_idle_time_belongs_to_the_wait_that_it_follows(tmp_path: Path) -> None:
    result = analysed(tmp_path, waits_once(0.99, in_loader=False))
    assert verdict(result, "loop_synchronisation")["share"] == pytest.approx(0.8, abs=0.01)
    # a wait for another stream: the GPU continues for 4 ms, and is idle for other reasons
    result = analysed(tmp_path, waits_once(5, in_loader=False))
    assert "loop_synchronisation" not in causes(result)
    assert result["synchronisation"][0]["gpu_idle_after_ms"] == 0


def test_waits_within_the_loader_are_the_loaders(tmp_path: Path) -> None:
    assert "loop_synchronisation" not in causes(analysed(tmp_path, waits_once(0.99, in_loader=True)))


def test_float32_products_on_a_gpu_with_tensor_cores(tmp_path: Path) -> None:
    slow = analysed(tmp_path, loop(kernel=GEMM_FP32))
    assert verdict(slow, "precision_not_reduced")["confidence"] <= 0.6
    assert slow["gpus"][0]["tensor_cores"]["share_of_matrix_time"] == 0
    fast = analysed(tmp_path, loop(kernel=GEMM_BF16))
    assert "precision_not_reduced" not in causes(fast)
    assert fast["gpus"][0]["tensor_cores"]["share_of_matrix_time"] == 1
    old = loop(kernel=GEMM_FP32)
    old.header["deviceProperties"] = [{**made_traces.A100, "computeMajor": 6}]
    assert "precision_not_reduced" not in causes(analysed(tmp_path, old))
    unknown = loop(kernel=GEMM_FP32)
    del unknown.header["deviceProperties"]
    assert "precision_not_reduced" in {a["cause"] for a in analysed(tmp_path, unknown)["abstained"]}


def test_kernels_without_matrix_products_report_nothing_about_precision(tmp_path: Path) -> None:
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"
    result = analysed(tmp_path, loop(kernel=name))
    assert result["gpus"][0]["tensor_cores"]["share_of_matrix_time"] is None
    assert "precision_not_reduced" not in causes(result)


@pytest.mark.parametrize(
    "name",
    [
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_relu_f2f_stages_64x3_tn",
        "volta_fp16_s884gemm_fp16_256x128_ldg8_f2f_nn",
        "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn_align8>(...)",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >(Flash_fwd_params)",
    ],
)
def test_names_of_kernels_on_tensor_cores(tmp_path: Path, name: str) -> None:
    assert analysed(tmp_path, loop(kernel=name))["gpus"][0]["tensor_cores"]["share_of_matrix_time"] == 1


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_64x32_sliced1x4_tn",
        "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int)",
        "cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
        "volta_scudnn_128x64_relu_interior_nn_v1",
    ],
)
def test_names_of_products_without(tmp_path: Path, name: str) -> None:
    assert analysed(tmp_path, loop(kernel=name))["gpus"][0]["tensor_cores"]["share_of_matrix_time"] == 0


def test_the_rank_that_makes_the_others_wait(tmp_path: Path) -> None:
    made = [
        loop(loader_us=4000 if rank == 2 else 200, collective_us=100 if rank == 2 else 2200, rank=rank, world_size=4)
        for rank in range(4)
    ]
    result = analysed(tmp_path, *made)
    found = verdict(result, "straggling_rank")
    assert found["rank"] == 2
    assert "same storage, cores and workers" in found["fix"]
    assert [row["rank"] for row in result["ranks"]] == [0, 1, 2, 3]
    assert result["ranks"][2]["collectives_ms"] == pytest.approx(0.1, abs=0.02)
    assert found["share"] == pytest.approx(2.1 / 4.3, abs=0.1)
    even = [loop(loader_us=200, collective_us=100, rank=rank, world_size=4) for rank in range(4)]
    assert "straggling_rank" not in causes(analysed(tmp_path, *even))


def test_ranks_without_collectives_are_not_compared(tmp_path: Path) -> None:
    result = analysed(tmp_path, loop(rank=0), loop(rank=1, loader_us=5000))
    assert "straggling_rank" in {a["cause"] for a in result["abstained"]}


def test_operators_by_their_own_and_their_whole_time(tmp_path: Path) -> None:
    made = MadeTrace()
    made.add("user_annotation", "ProfilerStep#1", 0, 1000)
    made.add("cpu_op", "outer", 100, 500, **{"External id": 1})
    made.add("cpu_op", "inner", 200, 100, **{"External id": 2})
    made.add("cpu_op", "outer", 350, 200, **{"External id": 3})  # calls itself
    made.add("cpu_op", "outside", 2000, 50, **{"External id": 4})
    # the times of the calls show their callers; in traces of 2022, "External id" is the correlation
    for at, link, size in ((250, 77, 40), (400, 78, 10), (610, 79, 99)):
        made.add("cuda_runtime", "cudaLaunchKernel", at, 5, correlation=link, **{"External id": link})
        made.add("kernel", "k", at + 300, size, 7, device=0, stream=7, correlation=link, **{"External id": 1})
    rows = {row["name"]: row for row in analysed(tmp_path, made)["operators"]}
    assert set(rows) == {"outer", "inner"}
    outer = rows["outer"]
    assert (outer["calls"], outer["host_self_ms"], outer["host_total_ms"]) == pytest.approx((2, 0.4, 0.5))
    assert (outer["device_self_ms"], outer["device_total_ms"]) == pytest.approx((0.01, 0.05))
    assert rows["inner"]["device_self_ms"] == pytest.approx(0.04)


def test_steps_are_taken_from_the_loader_where_none_are_marked(tmp_path: Path) -> None:
    made = loop(steps=5, loader_us=1000)
    made.events = [event for event in made.events if not event["name"].startswith("ProfilerStep")]
    steps = analysed(tmp_path, made)["steps"]
    assert (steps["source"], steps["count"]) == ("loader", 4)
    assert steps["loader"]["wait_ms"]["p50"] == pytest.approx(1.0)


def test_a_step_that_the_end_cut_is_left_out(tmp_path: Path) -> None:
    made = loop(steps=4)
    made.add("user_annotation", "ProfilerStep#14", made.host, 7)
    steps = analysed(tmp_path, made)["steps"]
    assert (steps["count"], steps["left_out"]) == (4, [14])


def test_a_trace_without_anything_abstains(tmp_path: Path) -> None:
    result = analysed(tmp_path, MadeTrace())
    assert result["verdicts"] == []
    assert result["abstained"]


@pytest.mark.parametrize("odd", [None, 3, "x", [3], {"name": 4}, [{"computeMajor": "8", "rank": "0"}]])
def test_odd_headers_do_no_harm(tmp_path: Path, odd: Any) -> None:
    made = loop(kernel=GEMM_FP32)
    keys = ("deviceProperties", "distributedInfo", "baseTimeNanoseconds", "host_name", "with_stack")
    made.header = dict.fromkeys(keys, odd)
    assert analysed(tmp_path, made)["steps"]["count"] == 6


def test_a_trace_without_a_gpu_reports_what_is_missing(tmp_path: Path) -> None:
    made = loop(loader_us=10)
    made.events = [e for e in made.events if e["cat"] in ("cpu_op", "user_annotation")]
    result = analysed(tmp_path, made)
    assert result["gpus"] == []
    missing = {a["cause"]: a["missing"] for a in result["abstained"]}
    assert "ProfilerActivity.CUDA" in missing["unpinned_copy"]
    assert causes(result) == ["compute_bound"]


def test_names_of_torch_before_1_11(tmp_path: Path) -> None:
    former = {
        "cpu_op": "Operator",
        "user_annotation": "Operator",
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "cuda_runtime": "Runtime",
    }
    made = loop(copy_us=800, source="Pageable", blocking=True, items=2)
    now = analysed(tmp_path, made)
    for event in made.events:
        event["cat"] = former[event["cat"]]
        if "External id" in event["args"] and event["cat"] != "Operator":
            event["args"]["external id"] = event["args"].pop("External id")
    before = analysed(tmp_path, made)
    for key in ("step_ms", "wait_ms", "verdicts", "gpus", "synchronisation", "operators"):
        assert before[key] == now[key], key


def test_intervals_of_predictions_widen_with_the_steps_differences(tmp_path: Path) -> None:
    even = verdict(
        analysed(tmp_path, loop(steps=12, loader_us=3000, iterator="_SingleProcessDataLoaderIter")),
        "python_main_process",
    )
    made = loop(steps=1, loader_us=3000, iterator="_SingleProcessDataLoaderIter")
    few = verdict(analysed(tmp_path, made), "python_main_process")
    assert few["confidence"] < even["confidence"]
    assert few["predicted_gain"][0] == 0 < even["predicted_gain"][0]


def test_gains_are_of_steps_per_second() -> None:
    assert [verdicts.gain_of(saved) for saved in (0, 0.2, 0.5, 1.0)] == [0, 0.25, 1, 99]


def run(*arguments: str | Path, status: int) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*COMMAND, "trace", *map(str, arguments)], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result


def test_the_command_shows_and_writes(tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    slow = loop(items=8, kernels=8, kernel_us=60, copy_us=300, function="train.py(41): log_loss").write(
        tmp_path / "t.json"
    )
    printed = run(slow, "--json-file", tmp_path / "report.json", status=1).stdout
    for word in ("loop_synchronisation", "log_loss", "Memcpy HtoD", "aten::mm", "fix:"):
        assert word in printed
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(run(slow, "--json", status=1).stdout)
    busy = loop(steps=20, kernels=40, kernel_us=200).write(tmp_path / "busy.json")
    assert "compute_bound" in run(busy, status=0).stdout


def test_the_commands_exit_status_for_bad_files(tmp_path: Path) -> None:
    pytest.importorskip("click", reason="the command line is not installed")
    whole = loop(steps=20, kernels=40, kernel_us=200).write(tmp_path / "busy.json").read_bytes()
    (tmp_path / "cut.json").write_bytes(whole[: len(whole) // 2])
    assert "killed" in run(tmp_path / "cut.json", status=1).stdout
    (tmp_path / "text.json").write_text("hello")
    assert "not a Chrome trace" in run(tmp_path / "text.json", status=3).stderr
    assert "no such file" in run(tmp_path / "none.json", status=3).stderr
    run(status=2)
