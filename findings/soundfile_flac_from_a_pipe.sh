#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# FLAC files that FFmpeg 7.0.2 (imageio-ffmpeg 0.6.0) wrote to a pipe do not state their number of samples: the header has 0, which
# means unknown. soundfile 0.13.1 (libsndfile 1.2.2) reports 2^63 - 1 samples, cannot read the whole file or blocks of it, and
# reads parts correctly. lhotse 1.33.0 stores the duration of 18 million years in its manifest without an error.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install imageio-ffmpeg==0.6.0 lhotse==1.33.0 numpy==2.4.6 soundfile==0.13.1 torch==2.13.0 urllib3==2.5.0

python - <<'PYTHON' | expect "file: 48000 samples, 3.0 s; read 48000; part 16000, equal; lhotse 3.0 s
pipe: 9223372036854775807 samples, 576460752303423.5 s; read ValueError; part 16000, equal; lhotse 576460752303423.5 s"
import subprocess

import imageio_ffmpeg
import lhotse
import numpy
import soundfile

tone = (numpy.sin(numpy.arange(48000) / 20) * 20000).astype("int16")
soundfile.write("a.wav", tone, 16000)
command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-i", "a.wav"]
subprocess.run([*command, "file.flac"], check=True)
with open("pipe.flac", "wb") as pipe:
    subprocess.run([*command, "-f", "flac", "-"], check=True, stdout=pipe)
for name in ("file", "pipe"):
    path = f"{name}.flac"
    info = soundfile.info(path)
    try:
        whole = str(len(soundfile.read(path)[0]))
    except ValueError as error:
        whole = type(error).__name__
    part = soundfile.read(path, start=16000, frames=16000, dtype="int16")[0]
    equal = "equal" if numpy.array_equal(part, tone[16000:32000]) else "different"
    recording = lhotse.Recording.from_file(path)
    print(
        f"{name}: {info.frames} samples, {info.duration} s; read {whole}; part {len(part)}, {equal}; "
        f"lhotse {recording.duration} s"
    )
PYTHON
