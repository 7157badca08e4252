# SPDX-License-Identifier: Apache-2.0
"""Each sample decodes a video."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for place in analysis.script.video_in_workers if analysis.script is not None else ():
        yield Found("warning", (f"{place.at}: {place.what} in code that workers run",), about=place.about)


CAUSE = Cause(
    page(
        "video_in_dataset",
        "each sample decodes a video",
        means="To reach a frame, a decoder must decode all frames since the last key frame, again in every epoch. A "
        "frame costs several times as much CPU time as a JPEG image of the same size.",
        recognised="Code that workers run opens a video with OpenCV, PyAV, decord, torchvision, torchcodec, imageio or "
        "moviepy.",
        to_do="Decode clips in Feedline's threads: feedline.open(folder).clip(frames=16). Or decode the frames once, "
        "before training: ffmpeg -i clip.mp4 -qscale:v 2 frames/clip/%06d.jpg, then feedline pack frames shards.",
        example="data.py, line 12: cv2.VideoCapture in code that workers run.",
    ),
    priority=SCRIPT + 135,
    evaluate=_evaluate,
)
