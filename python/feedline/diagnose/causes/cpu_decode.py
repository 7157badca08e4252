# SPDX-License-Identifier: Apache-2.0
"""Decoding saturates the CPUs."""

from __future__ import annotations

from feedline.diagnose.rules import contradictions, gains, production, signals
from feedline.diagnose.rules.cause import Cause, Rule
from feedline.diagnose.rules.certainty import CPU_OF_PAGING
from feedline.diagnose.rules.fixes import Fix, drop_in_may_help
from feedline.findings import Entry

CAUSE = Cause(
    Entry(
        code="cpu_decode",
        verb="diagnose",
        title="decoding saturates the CPUs",
        means="Images are stored compressed, and decoding them takes more CPU time than all later steps. A "
        "12-megapixel photo takes 100 ms to decode, however small the training crop is.",
        recognised="Measures the CPU time in image decoders while the loop waits.",
        to_do="Decode less of each image, decode each image once, or store smaller images.",
        abstains="The stages of a batch were not observed.",
        example="a batch takes 80.0 ms to produce, 79.0 ms of it CPU; by stage: decode 100 %.",
    ),
    rules=(Rule(250, lambda analysis: production.found(analysis, 0.92, "decode")),),
    fix=Fix(
        "Decode less: `from feedline import DataLoader` decodes only the needed region natively; or store smaller "
        "images.",
        own='Decode once: .cache("memory") or .cache(PATH) after the resize, or feedline pack --raw SIZE; or decode '
        'less: .decode(fidelity="fast"), smaller images.',
        lowered='Decode once: feedline.open(SOURCE)...cache("memory").loader(...), or feedline pack --raw SIZE; or '
        "store smaller images.",
        without_drop_in="Decode less: store smaller images, or decode each image once.",
    ),
    gain=gains.stages("decode"),
    drop_in=drop_in_may_help,
    signals=(signals.WORKERS, signals.STAGES),
    contradicted={
        "the CPUs were idle": contradictions.idle_cpus,
        "other programs used the CPUs": contradictions.other_programs,
    },
    paging_instead=CPU_OF_PAGING,
)
