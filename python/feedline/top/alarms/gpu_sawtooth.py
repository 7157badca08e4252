# SPDX-License-Identifier: Apache-2.0
"""A GPU alternates between busy and idle."""

from collections.abc import Iterable

from ...findings import Entry, Threshold
from ..host_indicators import indicators_text, supply_is_short
from ..rules import GPUS, Alarm, Occurrences, Seen

SAW_LOW = Threshold(0.20, "utilisation; idle below this")
SAW_HIGH = Threshold(0.70, "utilisation; busy from here on")
SAW_TURNS = Threshold(4, "changes in ten samples: twice down and up")


def turns(utilisation: Iterable[float | None]) -> int:
    """The number of changes from high to low or back."""
    high: bool | None = None
    count = 0
    for value in utilisation:
        if value is None or SAW_LOW < value < SAW_HIGH:
            continue
        count += high is not None and high != (value >= SAW_HIGH)
        high = value >= SAW_HIGH
    return count


def _evaluate(seen: Seen) -> Occurrences:
    for at, gpu in seen.own_gpus():
        history = seen.utilisations(gpu)
        if seen.held(history) is not None and turns(history) >= SAW_TURNS:
            signs = indicators_text(seen)
            beside = f" ({signs})" if signs else ""
            cause = "the GPU waits for data, run `feedline diagnose`" if supply_is_short(seen.now) else "data supply?"
            yield at, True, f"GPU {gpu.index} goes from busy to idle and back{beside}: {cause}"


ALARM = Alarm(
    Entry(
        code="gpu_sawtooth",
        verb="top",
        title="a GPU goes from busy to idle and back",
        means="The GPU processes the ready batches and then waits, usually for data.",
        recognised="From above 70 % to under 20 % and back, twice in ten samples. If also the loop waits, all CPUs are "
        "busy, or something waits for storage, data is reported as the cause.",
        to_do="Run `feedline diagnose`.",
        abstains="GPUs used only by other processes raise none, if the driver lists processes.",
        example="GPU 0 goes from busy to idle and back: data supply?",
    ),
    priority=GPUS + 20,
    evaluate=_evaluate,
)
