# SPDX-License-Identifier: Apache-2.0
"""LibriSpeech's folders: ``SPEAKER/CHAPTER/SPEAKER-CHAPTER.trans.txt`` next to the FLAC files that it lists.

Source: LibriSpeech's README. Multilingual LibriSpeech and LibriTTS have other layouts.
"""

from __future__ import annotations

import os

from .utterances import Utterances, fail, lines_of


def read(folder: str) -> Utterances:
    rows = Utterances(folder)
    for path, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files):
            if not name.endswith(".trans.txt"):
                continue
            transcript = os.path.join(path, name)
            for line, text in lines_of(transcript):
                key, _, words = text.partition(" ")
                parts = key.split("-")
                if len(parts) != 3:
                    fail(transcript, line, f"expected 'SPEAKER-CHAPTER-NUMBER text', not {text[:60]!r}")
                file = os.path.join(path, key + ".flac")
                rows.add(file, text=words, key=key, speaker=parts[0], chapter=parts[1])
    return rows
