# SPDX-License-Identifier: Apache-2.0
"""Makes audio files for tests: signals that differ at every sample."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy

RATE = 16_000


def signal(seconds: float, seed: int = 0, rate: int = RATE, channels: int = 1) -> Any:
    """Returns a chirp with noise, int16 (frames, channels)."""
    generator = numpy.random.default_rng(seed)
    times = numpy.arange(round(seconds * rate)) / rate
    tones = [numpy.sin(2 * numpy.pi * (200 + 300 * c) * times * (1 + times / 4)) for c in range(channels)]
    noise = generator.normal(0, 0.05, (len(times), channels))
    return numpy.clip((0.5 * numpy.stack(tones, 1) + noise) * 32768, -32768, 32767).astype(numpy.int16)


def write_wav(path: Path, samples: Any, rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())
    return path


def floats(samples: Any) -> Any:
    """Returns planes of float32 as the engine delivers them."""
    return (samples.T / numpy.float32(32768)).astype(numpy.float32)
