# SPDX-License-Identifier: Apache-2.0
"""Clips and frames of videos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from ...errors import ConfigError
from .operations import Fields, Operations

ClipSampling = Literal["random", "uniform", "segments"]


class Videos(Operations):
    """The methods of :class:`Dataset` that decode videos.

    Without :meth:`clip` or :meth:`frames`, the field (by default ``video``) contains the bytes of the file. With one of
    them, it is an array of frames; later operations apply to all frames of a sample, with the same random values.
    Frames are numbered in the order in which they are shown, without those that an MP4's edit list hides, and are
    rotated as in players. See docs/videos.md for their exactness.

    FFmpeg's libraries (5 to 8: libavformat 59 to 62) must be installed, or be in the folder that the environment
    variable ``FEEDLINE_FFMPEG`` names.

    Raises:
        ConfigError: an argument is out of range, or FFmpeg is missing; the message names the package. The error is
            raised by the call; that of a missing FFmpeg by :attr:`schema`, :meth:`loader` and samples.
        DataError: when a sample is read: the file is damaged, encrypted, has no such stream or frame, or is shorter
            than the clip.
    """

    def clip(
        self,
        frames: int | None = None,
        every: int = 1,
        sampling: ClipSampling = "random",
        clips: int = 1,
        start: float | None = None,
        *,
        fps: float | None = None,
        seconds: float | None = None,
        timestamps: bool = False,
        pad: bool = False,
        audio: bool = False,
        stream: int | None = None,
        fields: Fields = None,
    ) -> Self:
        """Decodes clips: uint8 of shape (frames, channels, height, width), or (clips, frames, ...) with ``clips > 1``.

        Clips are chosen by number, ``clip(frames=16, every=4)``, or by time: ``clip(fps=8, seconds=4)`` selects the 32
        frames that are shown every 1/8 second.

        Args:
            frames: number of frames of each clip.
            every: distance between frames; 1 selects consecutive frames.
            sampling: ``"random"`` draws the start of each clip; ``"uniform"`` begins clip i of n in the middle of part
                i of n equal parts of all possible starts, which is the middle of the video for one clip;
                ``"segments"`` draws one frame in each of ``frames`` equal parts of the video, as TSN does.
            clips: number of clips of each video.
            start: number of the first frame, or its time in seconds with ``fps``, instead of sampling.
            fps: frames per second, which may differ from that of the video: frames are repeated or skipped.
            seconds: length of the clip; the number of frames is ``fps * seconds``, rounded.
            timestamps: adds the field ``video_timestamps``, float64 of shape (frames) or (clips, frames): seconds from
                the first frame of the video.
            pad: a video that is shorter than the clip repeats its last frame, and the field ``video_is_pad``, bool of
                shape (frames) or (clips, frames), is true there. By default it is an error.
            audio: adds the field ``audio``, float32 of shape (channels, samples), or (clips, channels, samples) with
                ``clips > 1``: the sound from the time of the first frame to the end of the last one, at the file's
                rate. Batches are padded with zeros, with the lengths in ``audio_length``. :meth:`audio` sets its rate,
                channels and dtype. A video field with another NAME than ``video`` adds ``NAME_audio``.
            stream: number of the video stream in the file. None: the one that FFmpeg considers best,
                never a cover picture.
            fields: names of the videos; by default all.
        """
        return self._operation(
            "clip",
            fields,
            frames=frames,
            every=every,
            sampling=sampling,
            clips=clips,
            start=start,
            fps=fps,
            seconds=seconds,
            timestamps=timestamps,
            pad=pad,
            audio=audio,
            stream=stream,
        )

    def frames(
        self,
        frames: Sequence[int] | None = None,
        *,
        times: Sequence[float] | None = None,
        timestamps: bool = False,
        stream: int | None = None,
        fields: Fields = None,
    ) -> Self:
        """Decodes chosen frames, in the given order: uint8 of shape (frames, channels, height, width).

        Args:
            frames: numbers of frames, from 0; negative ones count from the end of the video.
            times: instead of numbers, seconds from the first frame. Each selects the frame that is shown then, which
                lasts until the next one begins. Times count as equal if they differ by less than a ten-thousandth of
                the unit in which the file stores times.
            timestamps: adds the field ``video_timestamps``, float64 of shape (frames): seconds from the first frame.
            stream: see :meth:`clip`.
            fields: names of the videos; by default all.
        """
        given = {name: value for name, value in (("frames", frames), ("times", times)) if value is not None}
        if len(given) != 1:
            raise ConfigError("frames: pass a list of frame numbers, or times=")
        return self._operation("frames", fields, timestamps=timestamps, stream=stream, **given)
