#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyAV 18.1.0 (FFmpeg 8.1.2) and Ogg Vorbis: the decoded file has fewer or more samples than were encoded, because the length
# in the last page is not applied exactly. soundfile 0.14.0 (libsndfile 1.2.2) gives the encoded number. FFmpeg's own Vorbis
# files give the same result as these, which libsndfile wrote.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install av==18.1.0 numpy==2.4.6 soundfile==0.14.0

python - <<'PYTHON' | expect "44100 samples at 44100 Hz: soundfile 44100, FFmpeg 44100
16000 samples at 44100 Hz: soundfile 16000, FFmpeg 15872
8000 samples at 44100 Hz: soundfile 8000, FFmpeg 8064
16000 samples at 16000 Hz: soundfile 16000, FFmpeg 16000
8000 samples at 16000 Hz: soundfile 8000, FFmpeg 8192
1000 samples at 16000 Hz: soundfile 1000, FFmpeg 1024"
import av
import numpy
import soundfile

for rate, count in ((44100, 44100), (44100, 16000), (44100, 8000), (16000, 16000), (16000, 8000), (16000, 1000)):
    noise = numpy.random.default_rng(0).uniform(-0.5, 0.5, count)
    soundfile.write("a.ogg", noise, rate, format="OGG", subtype="VORBIS")
    with av.open("a.ogg") as file:
        decoded = sum(frame.samples for frame in file.decode(audio=0))
    print(f"{count} samples at {rate} Hz: soundfile {len(soundfile.read('a.ogg')[0])}, FFmpeg {decoded}")
PYTHON
