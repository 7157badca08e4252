# SPDX-License-Identifier: Apache-2.0
"""The extensions of audio files, from the engine's table."""

from __future__ import annotations

from .. import _engine

EXTENSIONS = tuple(_engine.audio_extensions())  # in lower case, without a dot
