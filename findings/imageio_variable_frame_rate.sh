#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# imageio 2.38.1 with imageio-ffmpeg 0.8.1: a video of 20 frames with a variable frame rate has 42 frames, without a warning,
# because the FFmpeg program repeats frames up to the highest rate. The plugin pyav (PyAV 18.1.0) reads 20.
# shellcheck source=findings/environment
. "$(dirname "${BASH_SOURCE[0]}")/environment"
install av==18.1.0 imageio==2.38.1 imageio-ffmpeg==0.8.1 numpy==2.4.6

python - <<'PYTHON' | expect "pyav: 20 frames, 0 of them repeated
FFMPEG: 42 frames, 22 of them repeated"
from fractions import Fraction

import av
import imageio.v3
import numpy

with av.open("v.mp4", "w") as file:
    stream = file.add_stream("libx264", rate=30)
    stream.width = stream.height = 64
    stream.pix_fmt = "yuv420p"
    times = [*range(10), *range(12, 42, 3)]  # 30 frames per second, then 10
    for number, time in enumerate(times):
        frame = av.VideoFrame.from_ndarray(numpy.full((64, 64, 3), number * 12, numpy.uint8), format="rgb24")
        frame.pts, frame.time_base = time, Fraction(1, 30)
        file.mux(stream.encode(frame))
    file.mux(stream.encode())
for plugin in ("pyav", "FFMPEG"):
    grey = [int(frame[0, 0, 0]) for frame in imageio.v3.imiter("v.mp4", plugin=plugin)]
    print(f"{plugin}: {len(grey)} frames, {len(grey) - len(set(grey))} of them repeated")
PYTHON
