# SPDX-License-Identifier: Apache-2.0
"""A GPU alternates between busy and idle."""

from collections.abc import Iterable

from ...findings import Entry, Threshold
from ..host_indicators import indicators_text, supply_is_short
from ..rules import GPUS, Alarm, Occurrences, Seen

SAW_LOW = Threshold(0.20, "utilisation below which a GPU is idle")
SAW_HIGH = Threshold(0.70, "utilisation from which a GPU is busy")
SAW_TURNS = Threshold(4, "number of changes between busy and idle in ten samples: two falls and two rises")


def turns(utilisation: Iterable[float | None]) -> int:
    """Returns the number of changes between high and low."""
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
            reasons = f" ({signs})" if signs else ""
            cause = "the GPU waits for data; run `feedline diagnose`" if supply_is_short(seen.now) else "it may be "
            "waiting for data"
            yield at, True, f"GPU {gpu.index} alternates between busy and idle{reasons}: {cause}"


ALARM = Alarm(
    Entry(
        code="gpu_sawtooth",
        verb="top",
        title="a GPU alternates between busy and idle",
        means="The GPU processes the ready batches and then waits, usually for data.",
        recognised="The utilisation goes from above 70 % to under 20 % and back, twice in ten samples. If the loop "
        "also waits, all CPUs are busy, or a task waits for storage, data is reported as the cause.",
        to_do="Run `feedline diagnose`.",
        abstains="GPUs used only by other processes raise no alarm, if the driver lists processes.",
        example="GPU 0 alternates between busy and idle: it may be waiting for data",
    ),
    priority=GPUS + 20,
    evaluate=_evaluate,
)
