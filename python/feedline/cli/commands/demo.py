# SPDX-License-Identifier: Apache-2.0
"""``feedline demo``: demonstrates the package in a minute, on generated images."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from feedline.cli import exit_codes, parameters
from feedline.cli.console import ERR, OUT, counted, print_json, steps, table, wrapped


@click.command(short_help="Try Feedline in a minute, on generated photos or your own.")
@click.option(
    "--photos",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Use these class folders of photos instead of generating photos.",
)
@click.option("--images", default=200, type=click.IntRange(40), metavar="N", help="Number of photos to generate.")
@click.option(
    "--seconds",
    default=4.0,
    type=parameters.FiniteRange(0.1),
    metavar="SECONDS",
    help="Duration of the measurement of each loader.",
)
@click.option(
    "--epochs",
    default=4,
    type=click.IntRange(0),
    metavar="N",
    help="Number of epochs to train a small network; 0 for no training.",
)
@click.option(
    "--keep",
    type=parameters.OutputPath(file_okay=False),
    metavar="FOLDER",
    help="Keep the photos in this folder instead of deleting them.",
)
@parameters.as_json()
def demo(photos: Path | None, images: int, seconds: float, epochs: int, keep: str | None, as_json: bool) -> int:
    """Generate photos, split them, load them, stop and resume. If torch is installed, also train a small network; with
    Pillow, also compare with torch's DataLoader.

    The demo needs no dataset and no GPU, and takes about a minute. In a checkout, tools/demo builds and installs
    Feedline with torch, and then runs this command. Exit status 3: the resumed run yielded different batches from the
    uninterrupted run.
    """
    if photos is not None:
        return _tour(str(photos), seconds, epochs, as_json)
    with tempfile.TemporaryDirectory(prefix="feedline-demo-") as scratch:
        folder = Path(keep) if keep is not None else Path(scratch, "photos")
        _make(folder, images)
        return _tour(str(folder), seconds, epochs, as_json, keeps_files=keep is not None)


def _make(folder: Path, images: int) -> None:
    from feedline.demo import pictures

    with steps(images, "making photos") as advance:
        pictures.make(folder, images, done=advance)


def _tour(source: str, seconds: float, epochs: int, as_json: bool, keeps_files: bool = True) -> int:
    from feedline.demo import tour

    split = tour.parts(source)
    figures = tour.measured(source, seconds, lambda phase: steps(None, phase))
    try:
        resumed = tour.resumed(source)
    except tour.BrokenPromise as error:
        ERR.print(f"[bold red]feedline:[/] {error}; please report this")
        return exit_codes.FAILED
    trained: list[dict[str, float]] = []
    if epochs > 0 and tour.can_train():
        with steps(epochs, "training a small network") as advance:
            trained = tour.trained(source, epochs, advance)
    if as_json:
        print_json({**figures, "split": split, "resumed": resumed, "trained": trained})
    else:
        _print(figures, split, resumed, trained, source if keeps_files else "imagenet/train")
    return exit_codes.FINE


def _print(
    figures: dict[str, Any],
    split: dict[str, int],
    resumed: dict[str, int],
    trained: list[dict[str, float]],
    source: str,
) -> None:
    ours = figures["feedline"]
    OUT.print(f"{counted(figures['samples'], 'photo')} in {split['classes']} classes")
    rows = [_row("Feedline", ours)]
    if stock := figures.get("torch"):
        rows.append(_row(f"torch's DataLoader, {stock['transforms']}", stock))
    if limit := figures.get("decode_limit"):
        rows.append(("decoding only (the limit of this machine)", f"{limit['images_per_s']:,.0f}", "", ""))
    table(("loader", "images/s", "CPU-s per 1,000", "first batch"), rows)
    if "speed_up" in figures:
        OUT.print(
            f"[bold]{figures['speed_up']:.1f} times[/] as fast as torch's DataLoader, with the same number of workers"
        )
    else:
        OUT.print("install torch and Pillow to compare with torch's DataLoader as well")
    sentences = [
        f"split into {split['train']} for training and {split['valid']} for validation, with the same fraction of "
        "every class",
        f"stopped after batch {resumed['stopped_after']} of {resumed['batches']} and resumed with one thread: "
        "the same batches, byte for byte",
    ]
    if trained:
        seconds = sum(epoch["seconds"] for epoch in trained)
        waited = sum(epoch["waited_s"] for epoch in trained) / seconds
        sentences.append(
            f"trained a small network for {counted(len(trained), 'epoch')} in {seconds:.1f} s, "
            f"{100 * waited:.0f}% of it waiting for data: "
            f"the loss went from {trained[0]['loss']:.2f} to {trained[-1]['loss']:.2f}"
        )
    for sentence in sentences:
        OUT.print(*(wrapped(sentence, OUT.width) if OUT.is_terminal else [sentence]), sep="\n")
    OUT.print("\nyour data:", f"  feedline inspect {escape(source)}", f"  feedline bench {escape(source)}", sep="\n")
    OUT.print("your script, unchanged:", "  feedline diagnose -- python train.py", sep="\n")


def _row(label: str, measured: dict[str, Any]) -> tuple[str, str, str, str]:
    return (
        label,
        f"{measured['images_per_s']:,.0f}",
        f"{measured['cpu_s_per_1000_images']:.2f}",
        f"{1000 * measured['first_batch_s']:.0f} ms",
    )
