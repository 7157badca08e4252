#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/readme_picture.py [--check]: draws docs/pictures/images-per-second.svg, which compares loaders, from the record
of `tools/bench --peers`. --check: exits with 1 if the picture does not match the record, and writes nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "bench/results/2026-11-22-1484599-peers.json"
PICTURE = ROOT / "docs/pictures/images-per-second.svg"
# the loaders of the record's first table with their displayed names, each in the fastest configuration that its
# documentation describes
LOADERS = {
    "float32, Feedline, tar": "Feedline, tar",
    "float32, Feedline": "Feedline, class folders",
    "float32, TurboLoader": "TurboLoader",
    "float32, tf.data fused": "tf.data",
    "float32, DALI fused, no antialias": "DALI, on the CPU",
    "float32, FFCV": "FFCV",
    "float32, DataLoader + Pillow": "torch's DataLoader",
    "float32, Grain threads": "Grain",
    "float32, WebDataset": "WebDataset",
}
WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 30, 210, 70, 46, 44


def images_per_second(record: dict[str, Any]) -> list[tuple[str, float]]:
    """Returns the medians over the rounds, in descending order."""
    found = [
        (label, statistics.median(round_["samples_per_s"] for round_ in record["results"][name]))
        for name, label in LOADERS.items()
    ]
    return sorted(found, key=lambda pair: -pair[1])


def drawn(record: dict[str, Any]) -> str:
    """Draws bars with their numbers, in colours that can be distinguished on white and on black."""
    rows = images_per_second(record)
    most = rows[0][1]
    height = TOP + ROW * len(rows) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="14" role="img" aria-label="Images per second, by loader">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff" rx="6"/>',
        '<text x="16" y="28" font-size="16" font-weight="600" fill="#1f2328">Photos to training batches, images per '
        "second (more is better)</text>",
    ]
    for i, (label, value) in enumerate(rows):
        y = TOP + ROW * i
        ours = label.startswith("Feedline")
        length = (WIDTH - LEFT - RIGHT) * value / most
        weight = ' font-weight="600"' if ours else ""
        parts += [
            f'<text x="{LEFT - 10}" y="{y + 19}" text-anchor="end" fill="#1f2328"{weight}>{label}</text>',
            f'<rect x="{LEFT}" y="{y + 4}" width="{length:.1f}" height="{ROW - 8}" rx="3" '
            f'fill="{"#1f6feb" if ours else "#8a8f98"}"/>',
            f'<text x="{LEFT + length + 8:.1f}" y="{y + 19}" fill="#1f2328"{weight}>{value:,.0f}</text>',
        ]
    machine = record["machine"]
    cpus = machine["cpus"]
    parts += [
        f'<text x="16" y="{height - 18}" font-size="12" fill="#57606a">500 x 375 JPEG, random_resized_crop(224), flip, '
        f"normalize, float32. {cpus} cores of an {machine['cpu']}, {cpus} threads or workers each."
        "</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> int:
    picture = drawn(json.loads(RECORD.read_text()))
    if "--check" in sys.argv[1:]:
        return int(not PICTURE.is_file() or PICTURE.read_text() != picture)
    PICTURE.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
