# SPDX-License-Identifier: Apache-2.0
"""Operations on audio."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Self

from ...errors import ConfigError
from .. import arguments
from .operations import Fields, Operations


class Sound(Operations):
    """The methods of :class:`Dataset` for audio fields: WAV, FLAC, Ogg Vorbis, Opus, MP3, AAC, AIFF and AU files.

    Without :meth:`audio`, whole files are delivered with all channels at their own rate; all files must then have the
    rate and channels of the first one. libsndfile decodes Ogg, Opus and MP3, and libsoxr resamples:
    ``pip install feedline[audio]``, or ``apt install libsndfile1 libsoxr0``. FFmpeg decodes AAC.
    """

    def audio(
        self,
        rate: int | None = None,
        mono: bool = True,
        channels: Sequence[int] | None = None,
        offset: float = 0.0,
        duration: float | None = None,
        random: bool = False,
        dtype: Literal["float32", "int16"] = "float32",
        *,
        fields: Fields = None,
    ) -> Self:
        """Sets the form of audio: an array (channels, samples), in batches with its length, ``NAME_length``.

        Full scale is 1 (2^(n-1) for integers of n bits, (x - 128) / 128 for 8-bit WAV); files of floats are not
        clipped. Batches are padded with zeros to their longest row; ``NAME_length`` (int64) is the number of samples
        without padding. ``collate("list")`` does not pad; ``collate("stack")`` requires ``duration``, and files that
        are at least as long.

        Args:
            rate: samples per second of the result. Files with another rate are resampled by libsoxr's VHQ recipe; a
                part equals the slice of the resampled file. None: the rate of the first file, which all must have.
            mono: delivers the mean of all channels.
            channels: with ``mono=False``, the indexes of the channels to deliver, from 0; None delivers all.
            offset: seconds to skip at the start, rounded to the nearest sample.
            duration: length of the part in seconds; if the file ends earlier, the row is shorter. None: to the end.
            random: draws the start of the part uniformly from those that fit, for each sample and epoch.
            dtype: ``"float32"``, or ``"int16"``: integers as they are stored, without their low bits if they have more
                than 16 bits; other values are multiplied by 32768, rounded and clipped.
            fields: names of the fields, by default all audio fields.

        Raises:
            ConfigError: an argument is out of range; the samples have no audio; libsndfile or libsoxr is needed and
                missing; the message names the package.
            DataError: a file is damaged or truncated, has no samples, ends before ``offset``, or lacks a channel;
                raised when it is read.
        """
        where = "audio"
        if channels is not None and mono is True:
            mono = False
        return self._operation(
            where,
            fields,
            rate=None if rate is None else arguments.integer(where, "rate", rate, 1, 10_000_000),
            mono=mono,
            channels=channels,
            offset=offset,
            duration=duration,
            random=random,
            dtype=dtype,
        )

    def random_gain(self, gain: Sequence[float] = (-6.0, 6.0), p: float = 1.0, *, fields: Fields = None) -> Self:
        """Multiplies audio by a random factor, uniform in decibels.

        Args:
            gain: ``(low, high)`` in dB.
            p: probability that a sample is changed.
        """
        return self._operation("random_gain", fields, gain=gain, p=p)

    def add_noise(
        self,
        noise: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        snr: Sequence[float] = (10.0, 20.0),
        p: float = 1.0,
        *,
        fields: Fields = None,
    ) -> Self:
        """Adds a random part of a random noise file at a signal-to-noise ratio that is drawn uniformly.

        The ratio compares the mean power of the delivered part with that of the added noise. Noise files are read when
        they are drawn, resampled if necessary, and repeated if they are shorter; the mean of their channels is added to
        every channel.

        Args:
            noise: audio files, or a folder; the audio files in its subfolders are included.
            snr: ``(low, high)`` in dB.
            p: probability that noise is added.

        Raises:
            ConfigError: the folder contains no audio files, or an argument is out of range.
            DataError: a noise file is damaged; raised when it is read.
        """
        return self._operation("add_noise", fields, noise=_noise_files(noise), snr=snr, p=p)

    def speed_perturbation(self, factors: Sequence[float] = (0.9, 1.0, 1.1), *, fields: Fields = None) -> Self:
        """Plays each file faster or slower, by resampling, which changes its pitch too (Ko et al., 2015).

        ``offset`` and ``duration`` of :meth:`audio` are seconds after the change of speed.

        Args:
            factors: multiples of 0.001; one is drawn for each sample and epoch, and values above 1 are faster.
        """
        return self._operation("speed_perturbation", fields, factors=factors)


def _noise_files(noise: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    from ..audio_formats import EXTENSIONS

    if not isinstance(noise, str | os.PathLike):
        if not arguments.is_sequence(noise):
            raise ConfigError(f"add_noise: noise must be paths of audio files, or a folder, not {noise!r}")
        return [arguments.path_text("add_noise", "noise", one) for one in noise]
    path = arguments.path_text("add_noise", "noise", noise)
    if not os.path.isdir(path):
        return [path]
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.rpartition(".")[2].lower() in EXTENSIONS
    )
    if not found:
        raise ConfigError(f"add_noise: the folder {path!r} contains no audio files")
    return found
