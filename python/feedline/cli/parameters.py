# SPDX-License-Identifier: Apache-2.0
"""Value types and options shared by several subcommands.

Options have the names of the Python arguments, such as ``--num-workers``. An option for an output file is named after
its contents: ``--record``, ``--settings``, ``--page``, ``--json-file``. `aliases` are additional names of an
option, which work but are not listed in the help.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from feedline.cli.outputs import problem_of_file, problem_of_folder
from feedline.data.format_names import FORMATS

_MOST_BATCH_SIZE = 2**31 - 1
_MOST_MCUS = 65535  # a JPEG's restart interval has 16 bits
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0}

Command = TypeVar("Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A finite number within bounds. Rejects ``nan``, which would pass the bounds check and make a duration endless."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a valid duration; pass a number such as 5", param, ctx)
        return number


class Duration(click.ParamType):
    """Parses ``60``, ``60s`` or ``2m`` as seconds, at least `least_s`."""

    name = "duration"

    def __init__(self, least_s: float = 0.0) -> None:
        self.least_s = least_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m)?", value.strip())
        seconds = float(match[1]) * _UNITS_S[match[2] or ""] if match else -1.0
        if seconds < self.least_s:
            least = f", at least {self.least_s:g}s" if self.least_s else ""
            self.fail(f"{value!r} is not a time such as 60s or 2m{least}", param, ctx)
        return seconds


class Percent(click.ParamType):
    """Parses ``10%`` or ``0.1`` as a fraction between 0 and 1, exclusive."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)", value.strip())
        share = float(match[1]) / (100 if match[2] else 1) if match else -1.0
        if not 0 < share < 1:
            self.fail(f"{value!r} is not a fraction such as 10% or 0.1", param, ctx)
        return share


class ByteSize(click.ParamType):
    """Parses ``2GiB``, ``500MB`` or a number of bytes."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from feedline import ConfigError
        from feedline.data import arguments

        try:
            given = int(value) if isinstance(value, str) and value.isdigit() else value
            return arguments.byte_count("feedline", "the size", given)
        except ConfigError as error:
            self.fail(str(error).removeprefix("feedline: "), param, ctx)


class BatchSizes(click.ParamType):
    """Parses ``32:256`` as (low, high)."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+):(\d+)", value.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]) <= _MOST_BATCH_SIZE:
            self.fail(f"{value!r} is not a range such as 32:256", param, ctx)
        return int(match[1]), int(match[2])


class ShardRange(click.ParamType):
    """Parses ``4:8`` as (first, end)."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d{1,9}):(\d{1,9})", value.strip())
        if match is None or int(match[1]) >= int(match[2]):
            self.fail(f"{value!r} is not a range of shards such as 4:8, which selects shards 4 to 7", param, ctx)
        return int(match[1]), int(match[2])


class AutoOrRange(click.ParamType):
    """Parses a number within bounds, or ``auto``; returns an int or ``auto``."""

    name = "number"

    def __init__(self, low: int, high: int | None = None) -> None:
        self._numbers = click.IntRange(low, high)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto":
            return "auto"
        if isinstance(value, int):
            return value
        if not value.isdecimal():
            high = "" if self._numbers.max is None else f" to {self._numbers.max}"
            self.fail(f"{value!r} is neither a number from {self._numbers.min}{high} nor 'auto'", param, ctx)
        return int(self._numbers.convert(value, param, ctx))


class OutputFile(click.Path):
    """An output file of a subcommand, validated before it runs; converts to :class:`pathlib.Path`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)
        self.name = "file"  # in help

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = problem_of_file(value)
        if found is not None:
            self.fail(found, param, ctx)
        return super().convert(value, param, ctx)


class OutputFolder(click.Path):
    """A folder that a subcommand writes into, created if missing; the value is returned unchanged."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = problem_of_folder(value)
        if found is not None:
            self.fail(found, param, ctx)
        return super().convert(value, param, ctx)


class OutputPath(click.Path):
    """A file or folder that the library writes, checked by the library's rule; the value is returned unchanged.

    `urls`: whether URLs of object storage are allowed.

    Python callers use the same rule: :func:`feedline.data.arguments.output_path`.
    """

    def __init__(self, urls: bool = False, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._urls = urls

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from feedline import ConfigError
        from feedline.data import arguments

        try:
            arguments.output_path("feedline", "the path", value, urls=self._urls)
        except ConfigError as error:
            self.fail(str(error).removeprefix("feedline: "), param, ctx)
        return super().convert(value, param, ctx)


OUTPUT_FILE = OutputFile()
OUTPUT_FOLDER = OutputFolder()
OUTPUT_PATH = OutputPath()
OUTPUT_PLACE = OutputPath(urls=True)
INPUT_FILE = click.Path(dir_okay=False, path_type=Path)  # a missing one is a missing source, as for every subcommand
PACKED_FORMATS = tuple(name for name in FORMATS if name not in ("numpy", "megatron", "datatrove", "pixels"))
INPUT_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
RESTART_INTERVAL = AutoOrRange(1, _MOST_MCUS)
NUM_WORKERS = AutoOrRange(1)


class AliasedOption(click.Option):
    """An option with additional names, which work but are not listed in the help."""

    def __init__(self, names: list[str], aliases: tuple[str, ...] = (), **attributes: Any) -> None:
        super().__init__([*names, *aliases], **attributes)
        self._aliases = aliases

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return self._without_aliases(super().get_help_record, ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return self._without_aliases(super().get_error_hint, ctx)

    def _without_aliases(self, function: Callable[[Any], Any], ctx: click.Context | None) -> Any:
        names = self.opts
        self.opts = [name for name in names if name not in self._aliases]
        try:
            return function(ctx)
        finally:
            self.opts = names


def option(*names: str, aliases: tuple[str, ...] = (), **attributes: Any) -> Callable[[Command], Command]:
    """``click.option`` with `aliases`."""
    return click.option(*names, cls=AliasedOption, aliases=aliases, **attributes)


def on_cluster(command: Command) -> Command:
    """Adds ``--on``."""
    help = "Run on a Ray cluster: ray, or ray://HOST:PORT. All nodes need the same version of Feedline and paths."
    return click.option("--on", metavar="CLUSTER", help=help)(command)


def num_workers(*aliases: str, help: str) -> Callable[[Command], Command]:
    """``--num-workers``: number of loading threads or processes, like the Python argument."""
    return option("--num-workers", aliases=aliases, default="auto", type=NUM_WORKERS, metavar="N", help=help)


def source_format(*formats: str) -> Callable[[Command], Command]:
    """``--format``: required if the format cannot be detected from SOURCE."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(formats),
        show_default="detected from SOURCE",
        help="Format of SOURCE.",
    )


def fields(command: Command) -> Command:
    """``--fields SPECS``: like the `fields` argument of ``feedline.open``."""
    help = (
        'Specification of each field, such as "jpg mask.png json", or for a folder "images/{key}.jpg masks/{key}.png".'
    )
    return click.option("--fields", metavar="SPECS", help=help)(command)


def annotated(command: Command) -> Command:
    """``--split``, ``--config`` and ``--image-folder``: the arguments `split`, `config` and `images` of
    ``feedline.open``.
    """
    folder = click.option(
        "--image-folder", metavar="FOLDER", help="For COCO: the image folder, if not next to the annotations."
    )
    return _hub_options("For COCO, VOC or YOLO: the list of images, such as train; for the Hub: the split.")(
        folder(command)
    )


def of_hub(command: Command) -> Command:
    """``--split`` and ``--config`` of datasets on the Hub."""
    return _hub_options("Split of a dataset on the Hub.")(command)


def _hub_options(help_of_split: str) -> Callable[[Command], Command]:
    split = click.option("--split", metavar="NAME", help=help_of_split)
    config = click.option(
        "--config",
        metavar="NAME",
        help="Configuration of a dataset on the Hub; if omitted, the one marked in its card.",
    )
    return lambda command: split(config(command))


def as_json(help: str = "Print one JSON object.") -> Callable[[Command], Command]:
    """``--json``, which every subcommand has."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def record_file(*aliases: str) -> Callable[[Command], Command]:
    """``--record FILE``: the run record of a subcommand that measures."""
    return option("--record", aliases=aliases, type=OUTPUT_FILE, help="Write a run record; see docs/run-record.md.")


def machine(command: Command) -> Command:
    """``--machine``: also measures the machine itself."""
    help = "Also measure the machine itself, for `feedline diff` (about 5 s)."
    return click.option("--machine", is_flag=True, help=help)(command)


def gpu_price_only(command: Command) -> Command:
    """``--gpu-price``: used to compute the cost of a GPU's idle time."""
    return click.option(
        "--gpu-price",
        type=FiniteRange(0),
        metavar="PRICE",
        show_default="FEEDLINE_GPU_PRICE",
        help="Price of a GPU-hour, used to compute the cost of idle time.",
    )(command)


def gpu_price(command: Command) -> Command:
    """``--gpu-price`` and ``--job-hours``: used to compute the cost of waiting and the savings of a fix."""
    hours = click.option(
        "--job-hours",
        default=24.0,
        type=FiniteRange(0, min_open=True),
        metavar="HOURS",
        help="Duration of a whole job, used to compute the savings of a gain.",
    )
    return gpu_price_only(hours(command))


def causes_folders() -> Callable[[Command], Command]:
    """``--causes FOLDER``, repeatable: folders of additional causes for diagnose."""
    return click.option(
        "--causes",
        type=INPUT_FOLDER,
        multiple=True,
        metavar="FOLDER",
        help="Also use the causes in this folder; see docs/findings.md.",
    )
