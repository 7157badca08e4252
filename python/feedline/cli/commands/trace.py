# SPDX-License-Identifier: Apache-2.0
"""``feedline trace``: analyses torch.profiler traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from feedline import trace as traces
from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, bytes_text, print_json, steps, table
from feedline.cli.outputs import distinct
from feedline.trace.merging import merge as merge_files
from feedline.trace.report import has_problems

_STYLE = {"critical": "bold red", "warning": "yellow", "note": "cyan"}
_WIDEST_NAME = 60
_HEIGHTS, _SPARKLINE_COLUMNS = "▁▂▃▄▅▆▇█", 60


@click.command(short_help="Show where the time of training steps goes, from a torch.profiler trace.")
@click.argument("files", nargs=-1, required=True, type=parameters.INPUT_FILE)
@click.option(
    "--merge",
    nargs=2,
    type=(parameters.INPUT_FILE, parameters.OUTPUT_FILE),
    metavar="SPANS MERGED",
    help="Merge FILE and the stages in SPANS into MERGED, for ui.perfetto.dev.",
)
@click.option("--top", default=10, type=click.IntRange(1), metavar="N", help="Number of operators and kernels to list.")
@parameters.option(
    "--json-file", aliases=("--output",), type=parameters.OUTPUT_FILE, help="Write the JSON object to this file."
)
@parameters.as_json()
def trace(
    files: tuple[Path, ...], merge: tuple[Path, Path] | None, top: int, json_file: Path | None, as_json: bool
) -> int:
    """Read Chrome traces written by torch.profiler, FILE.json or FILE.json.gz, and report where the time of the steps
    goes.

    Several files are treated as the ranks of one run. Exit status 1: there is a cause of severity "warning" or
    "critical", or a file could not be read completely; 3: no file could be read.
    """
    if merge and len(files) > 1:
        raise click.UsageError("--merge: pass exactly one FILE")
    distinct(
        {**{f"FILE {file}": file for file in files}, "--json-file": json_file}
        | ({"SPANS": merge[0], "MERGED": merge[1]} if merge else {})
    )
    shown = files
    merged: dict[str, Any] | None = None
    if merge:
        merged = _merge(files[0], *merge)
        shown = (merge[1],)
    result = traces.analyse([_read(path) for path in shown])
    if merged:
        result["merged"] = merged
    if json_file:
        json_file.write_text(json.dumps(result, indent=2) + "\n")
    print_json(result) if as_json else _print(result, top)
    return exit_codes.PROBLEMS_FOUND if has_problems(result) else exit_codes.FINE


def _read(path: Path) -> traces.Trace:
    with steps(path.stat().st_size, f"reading {path.name}") as advance:
        return traces.read(path, advance)


def _merge(file: Path, spans: Path, output: Path) -> dict[str, Any]:
    with steps(file.stat().st_size, "merging") as advance:
        done = merge_files(file, [spans], output, advance)
    if done.is_of_another_run:
        ERR.print(
            f"[yellow]feedline:[/] none of the {done.spans} spans is within the trace's time; check that both are "
            "from the same run"
        )
    return {"path": str(output), **vars(done)}


def _print(result: dict[str, Any], top: int) -> None:
    for file in result["files"]:
        facts = [f"{file['events']:,} events", file["gpu"], file["host"]]
        OUT.print(f"[bold]{escape(file['path'])}[/]: {escape(', '.join(str(fact) for fact in facts if fact))}")
        for line in file["damage"]:
            OUT.print(f"  [yellow]damaged:[/] {escape(line)}; the results cover only the part before the damage")
    if result.get("merged"):
        merged = result["merged"]
        OUT.print(f"{merged['spans']:,} of Feedline's spans were merged into {escape(merged['path'])}")
    _print_steps(result["steps"])
    _print_verdicts(result)
    if "ranks" in result:
        _table(
            "ranks, ms per step",
            ("rank", "steps", "step", "own", "loader", "collectives"),
            result["ranks"],
            ("rank", "steps", "step_ms", "own_ms", "loader_ms", "collectives_ms"),
        )
    for gpu in result["gpus"]:
        _print_gpu(gpu)
    _print_synchronisation(result["synchronisation"])
    rows = result["operators"][:top]
    _table(
        "operators, ms",
        ("operator", "calls", "host self", "host total", "GPU self", "GPU total"),
        rows,
        ("name", "calls", "host_self_ms", "host_total_ms", "device_self_ms", "device_total_ms"),
    )
    _table(
        "kernels",
        ("kernel", "calls", "ms", "est. occupancy %"),
        result["kernels"][:top],
        ("name", "calls", "ms", "occupancy_percent"),
    )
    _table(
        "inside the loader's next()",
        ("function", "calls", "self ms"),
        result["in_loader"][:top],
        ("name", "calls", "self_ms"),
    )
    _table("Feedline's stages", ("stage", "items", "busy ms"), result["stages"], ("stage", "items", "busy_ms"))
    for one in result["memory"]:
        _print_memory(one, top)
    for line in result["missing"]:
        OUT.print(f"[dim]not in the trace: {escape(line)}[/]")


def _print_steps(steps: dict[str, Any]) -> None:
    times, loader = steps["step_ms"], steps["loader"]
    OUT.print(
        f"{steps['count']} steps ({steps['source']}): {times['mean']:.2f} ms on average, median {times['p50']:.2f}, "
        f"95th percentile {times['p95']:.2f}, longest {times['max']:.2f}"
    )
    if steps["left_out"]:
        OUT.print(f"  steps omitted because the recording ended in them: {', '.join(map(str, steps['left_out']))}")
    if loader["found"]:
        OUT.print(f"  in the loader's next(): {loader['wait_ms']['mean']:.2f} ms per step, {loader['share']:.1%}")


def _print_verdicts(result: dict[str, Any]) -> None:
    for verdict in result["verdicts"]:
        low, high = verdict["predicted_gain"]
        style = "green" if verdict["cause"] == "compute_bound" else _STYLE[verdict["severity"]]
        OUT.print(
            f"[{style}]{verdict['cause']}[/] {verdict['share']:.0%} of the step, confidence {verdict['confidence']:.2f}"
        )
        for line in verdict["evidence"]:
            OUT.print(f"  {escape(line)}")
        gain = f" ({low:.0%} to {high:.0%} more steps per second)" if high else ""
        OUT.print(f"  [bold]fix:[/] {escape(verdict['fix'])}{gain}")
    by_reason: dict[str, list[str]] = {}
    for abstained in result["abstained"]:
        by_reason.setdefault(abstained["missing"], []).append(abstained["cause"])
    for missing, causes in by_reason.items():
        OUT.print(f"[dim]not judged: {', '.join(causes)}; missing: {escape(missing)}[/]")


def _print_gpu(gpu: dict[str, Any]) -> None:
    OUT.print(
        f"GPU {gpu['device']}: kernels {gpu['kernel_share']:.1%} of the time, "
        f"only copies {gpu['copy_only_share']:.1%}, idle {gpu['idle_share']:.1%}"
    )
    for state, share in gpu["idle_while"].items():
        if share >= 0.001:
            OUT.print(f"  idle while the host was {state}: {share:.1%}")
    cores = gpu["tensor_cores"]
    if cores["share_of_matrix_time"] is not None:
        OUT.print(
            f"  Tensor Cores: {cores['share_of_matrix_time']:.0%} of the time of matrix operations "
            f"({cores['inferred_from']})"
        )
    _table(
        "copies",
        ("kind", "count", "MB", "ms", "GB/s", "during kernels"),
        [_copy_row(row) for row in gpu["copies"]],
        ("name", "count", "mb", "ms", "rate", "overlap"),
    )
    _table(
        "longest periods without GPU work", ("at ms", "ms", "the host was"), gpu["gaps"][:5], ("at_ms", "ms", "host")
    )


def _print_memory(memory: dict[str, Any], top: int) -> None:
    peak, device = memory["peak_bytes"], memory["device"]
    reserved = f", {bytes_text(memory['reserved_bytes'])} reserved" if memory["reserved_bytes"] else ""
    OUT.print(
        f"memory of {device}: peak {bytes_text(peak)} allocated at {memory['peak_at_ms']:.0f} ms{reserved}; "
        f"{bytes_text(memory['first_bytes'])} at first, {bytes_text(memory['last_bytes'])} at last"
    )
    OUT.print(f"  over time, up to the peak: {_sparkline([value for _, value in memory['points']])}")
    if memory["rise_per_step_bytes"]:
        OUT.print(
            f"  [yellow]rises steadily, by {bytes_text(memory['rise_per_step_bytes'])} per step:[/] tensors are kept "
            "from step to step, for example losses with their graphs"
        )
    _table(
        f"memory of {device} by operator",
        ("operator", "allocations", "allocated MB", "held at peak, MB"),
        [
            {**row, "mb": row["allocated_bytes"] / 1e6, "held": row["held_at_peak_bytes"] / 1e6}
            for row in memory["operators"][:top]
        ],
        ("name", "allocations", "mb", "held"),
    )


def _sparkline(values: list[float]) -> str:
    """Returns a line of columns whose heights show values from 0 to the largest."""
    columns = min(len(values), _SPARKLINE_COLUMNS)
    spans = [values[i * len(values) // columns : (i + 1) * len(values) // columns] for i in range(columns)]
    top = max(max(values), 1)
    return "".join(_HEIGHTS[min(int(max(span) / top * len(_HEIGHTS)), len(_HEIGHTS) - 1)] for span in spans)


def _copy_row(row: dict[str, Any]) -> dict[str, Any]:
    rate = f"{row['GB_per_s']:.1f}" if row["GB_per_s"] else ""
    return {**row, "mb": row["bytes"] / 1e6, "rate": rate, "overlap": f"{row['overlapped_share']:.0%}"}


def _print_synchronisation(rows: list[dict[str, Any]]) -> None:
    _table(
        "waits for the GPU",
        ("asked by", "in", "copy", "per step", "ms", "GPU idle after, ms"),
        rows,
        ("operator", "place", "copy", "per_step", "wait_ms", "gpu_idle_after_ms"),
    )


def _table(title: str, columns: tuple[str, ...], rows: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    if rows:
        table(columns, [[_cell(row[key]) for key in keys] for row in rows], title=title)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return escape(text if len(text) <= _WIDEST_NAME else text[: _WIDEST_NAME - 3] + "...")
