# SPDX-License-Identifier: Apache-2.0
"""``feedline tokenize``: writes texts or conversations as token files for Megatron."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import OUT, bytes_text, counted, print_json, progress

if TYPE_CHECKING:
    from feedline.tokenizing import Report

_MOST_ROWS = 20


@click.command(short_help="Write texts or chats as token files for Megatron.")
@click.argument("source")
@click.argument("output", type=parameters.OUTPUT_PATH)
@click.option(
    "--tokenizer",
    required=True,
    metavar="FILE",
    help="A tokenizer.json, a sentencepiece model, or a model's folder.",
)
@click.option("--field", metavar="NAME", show_default="text", help="Field, column or tar member with the text.")
@click.option(
    "--messages", metavar="NAME", help="Field with conversations, instead of texts; also writes OUTPUT.loss_mask."
)
@click.option("--chat-template", metavar="FILE", help="With --messages: replaces the template in the model's folder.")
@click.option("--max-length", metavar="N", type=click.IntRange(min=1), help="Truncate each document to N tokens.")
@parameters.source_format(*parameters.PACKED_FORMATS)
@click.option("--append-eod", is_flag=True, help="Append the end-of-document token to each document.")
@click.option(
    "--eod", metavar="TOKEN", show_default="from the tokenizer", help="With --append-eod: this token, or its id."
)
@click.option("--no-special-tokens", is_flag=True, help="Do not add the tokenizer's special tokens, such as BOS.")
@click.option(
    "--on-error",
    default="raise",
    type=click.Choice(["raise", "skip"]),
    help="Stop at a bad document, or skip it and list it.",
)
@parameters.on_cluster
@parameters.num_workers("--jobs", help="Number of processes; auto: number of usable CPUs.")
@parameters.as_json()
def tokenize(
    source: str,
    output: str,
    tokenizer: str,
    field: str | None,
    messages: str | None,
    chat_template: str | None,
    max_length: int | None,
    format_: str | None,
    append_eod: bool,
    eod: str | None,
    no_special_tokens: bool,
    on_error: str,
    on: str | None,
    num_workers: int | Literal["auto"],
    as_json: bool,
) -> int:
    """Write the texts or conversations of SOURCE as tokens to OUTPUT.bin and OUTPUT.idx, in Megatron's format.

    SOURCE is JSONL files, which may be compressed ("corpus/*.jsonl.gz"), or any source of `feedline inspect` with a
    text field: Parquet or Arrow files, tars (--field txt). Each document is a sequence; documents without tokens
    are left out. If the command is interrupted, run it again to resume: finished parts are reused. OUTPUT.tokenize.json
    describes the output. Exit status 1: documents were skipped; 3: a document is bad, or OUTPUT cannot be written.
    """
    from feedline import tokenizing

    with progress(None, "tokenizing") as bar:
        report = tokenizing.tokenize(
            source,
            output,
            tokenizer=tokenizer,
            field=field,
            messages=messages,
            chat_template=chat_template,
            max_length=max_length,
            format=format_,
            append_eod=append_eod,
            eod=eod,
            add_special_tokens=not no_special_tokens,
            on_error="skip" if on_error == "skip" else "raise",
            num_workers=num_workers,
            on=on,
            progress=lambda done, total: bar.update(bar.task_ids[0], completed=done, total=total),
        )
    if as_json:
        print_json(report._asdict() | {"skipped": [vars(skipped) for skipped in report.skipped]})
    else:
        _print(report)
    return exit_codes.PROBLEMS_FOUND if report.skipped else exit_codes.FINE


def _print(report: Report) -> None:
    found = f"; {report.parts_found:,} of {counted(report.parts, 'part')} already existed" if report.parts_found else ""
    written = f"{counted(report.documents, 'document')}, {counted(report.tokens, 'token')} ({report.dtype})"
    OUT.print(f"{written}, {bytes_text(report.bytes)}{found}")
    if report.empty:
        OUT.print(f"{counted(report.empty, 'document')} without tokens left out")
    for skipped in report.skipped[:_MOST_ROWS]:
        OUT.print(f"[yellow]skipped[/] {escape(skipped.why)}")
    if len(report.skipped) > _MOST_ROWS:
        OUT.print(f"... and {len(report.skipped) - _MOST_ROWS:,} more; {escape(report.output)}.tokenize.json lists all")
    OUT.print(escape(f"{report.output}.bin, {report.output}.idx"))
