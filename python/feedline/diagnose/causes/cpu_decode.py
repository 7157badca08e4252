# SPDX-License-Identifier: Apache-2.0
"""The CPUs are used up by decoding."""

from __future__ import annotations

from feedline.diagnose.judging import contradictions, gains, making, signals
from feedline.diagnose.judging.cause import Cause, Rule
from feedline.diagnose.judging.certainty import CPU_OF_PAGING
from feedline.diagnose.judging.fixes import Fix
from feedline.findings import Entry

CAUSE = Cause(
    Entry(
        code="cpu_decode",
        verb="diagnose",
        title="the CPUs are used up by decoding",
        means="Images are stored compressed, and taking them apart costs more CPU than all that follows. A photo of "
        "12 megapixels takes 100 ms, however small the crop that is trained on.",
        recognised="Thread CPU inside image decoders, within the time in which batches are late.",
        to_do="Decode less of each image, decode each once, or store smaller ones.",
        abstains="The stages of a batch were not seen.",
        example="a batch takes 80.0 ms to make, 79.0 ms of it CPU; of it: decode 100 %.",
    ),
    rules=(Rule(250, lambda case: making.found(case, 0.92, "decode")),),
    fix=Fix(
        "Decode less: `from feedline import DataLoader` decodes only the needed region natively; or store smaller "
        "images.",
        own='Decode once: .cache("memory") or .cache(PATH) behind the resize, or feedline pack --raw SIZE; or decode '
        'less: .decode(fidelity="fast"), smaller images.',
        lowered='Decode once: feedline.open(SOURCE)...cache("memory").loader(...), or feedline pack --raw SIZE; or '
        "store smaller images.",
    ),
    gain=gains.stages("decode"),
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={"the CPUs were idle": contradictions.idle_cpus},
    beside_paging=CPU_OF_PAGING,
)
