# SPDX-License-Identifier: Apache-2.0
"""Operations on the images and masks of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from .._engine import Dataset as EngineDataset
from ..errors import ConfigError
from . import arguments, literals
from .operation_arguments import engine_values

Fields = str | Sequence[str] | None  # names of fields; None: all that the operation is for


class Operations:
    """What :class:`Dataset` does to images and masks: every operation returns a new dataset."""

    _engine: EngineDataset

    def _with(self, engine: EngineDataset) -> Self:
        raise NotImplementedError

    def _operation(self, name: str, fields: Fields, **given: Any) -> Self:
        """With the operation that the engine has under this name. Arguments that are left out have its defaults."""
        names = arguments.field_names(name, fields)
        return self._with(self._engine.with_operation(name, names, engine_values(name, given)))

    def decode(
        self,
        mode: str = "RGB",
        *,
        fidelity: literals.Fidelity = "exact",
        apply_exif_orientation: bool = False,
        device: str | None = None,
        fields: Fields = None,
    ) -> Self:
        """To pixels, uint8: ``"RGB"`` (3 channels) or ``"L"`` (1 channel). Happens by itself, as RGB, if left out.

        Grey, palette, alpha, CMYK and 16-bit images are converted as ``PIL.Image.convert`` does.

        Args:
            mode: ``"RGB"`` or ``"L"``.
            fidelity: ``"exact"`` is Pillow's pixels, bit for bit. ``"fast"``: where the next step makes a JPEG or a
                crop of it much smaller, it is decoded at a part of its size, and coloured after the resize;
                docs/fidelity.md says by how much its pixels then differ. Everything else stays exact.
            apply_exif_orientation: Turn each image as its EXIF says, before anything else looks at it, as
                ``PIL.ImageOps.exif_transpose`` does. Off by default, as in torchvision: masks and boxes of a dataset
                are mostly those of the pixels as they are stored.
            device: ``"cuda"``: the GPU that a loader's batches are on decodes baseline JPEGs, by nvJPEG (the package
                ``nvidia-nvjpeg-cu12``, or ``nvidia-nvjpeg`` for CUDA 13), to nearly the same pixels
                (docs/fidelity.md); the CPU decodes all else, and samples without a loader. Behind it stands what
                ``cache("device")`` takes. None, the default: the CPU.

        Raises:
            ConfigError: an argument is none of these, or ``device`` with ``fidelity="fast"``. From :meth:`loader`:
                without ``device="cuda"`` there, or without nvJPEG; the message names the package.
        """
        if device is not None:
            arguments.choice("decode", "device", device, ("cuda",))
            if fidelity != "exact":
                raise ConfigError('decode: fidelity="fast" is the CPU\'s; give it or device="cuda", not both')
            from ..machine import nvjpeg  # with ctypes, which takes its time

            nvjpeg.load_packaged()
        else:
            arguments.choice("decode", "fidelity", fidelity, ("exact", "fast"))
        return self._operation(
            "decode",
            fields,
            mode=mode.upper() if isinstance(mode, str) else mode,
            fidelity=fidelity if device is None else "nvjpeg",
            apply_exif_orientation=apply_exif_orientation,
        )

    def resize(
        self,
        size: int | Sequence[int] | None = None,
        interpolation: Any = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """To ``(height, width)`` pixels, or one edge to a number of pixels with the aspect ratio kept.

        Args:
            size: pixels; an int is for the smaller edge. None: the larger edge becomes ``max_size``.
            interpolation: ``"nearest"``, ``"box"``, ``"bilinear"``, ``"bicubic"``, ``"lanczos"``, or ``"random"``,
                which is bilinear or bicubic, drawn for each image; torchvision's InterpolationMode and Pillow's
                Resampling are taken too. ``"torch_bilinear"`` and ``"torch_bicubic"`` give what torch makes of tensors
                of uint8 (``interpolate(..., antialias=True)``, which torchvision v2 calls), to the bit.
            max_size: upper limit of the larger edge, pixels; only with an int ``size``, or none.
            antialias: pixels are Pillow's, which are always antialiased (``"nearest"`` never): False is refused.
        """
        arguments.refuse_aliased("resize", antialias)
        return self._operation("resize", fields, size=size, max_size=max_size, interpolation=interpolation)

    def center_crop(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        rounding: Literal["even", "down"] = "even",
        *,
        fields: Fields = None,
    ) -> Self:
        """The middle ``size`` x ``size`` or ``(height, width)`` pixels; smaller images are padded on both sides.

        torchvision's CenterCrop, which pads with black; with ``fill`` and ``padding_mode``, as for :meth:`random_crop`,
        timm's CenterCropOrPad. ``rounding`` is of half of an odd difference: ``"even"``, to the even number, as
        torchvision does; ``"down"``, as Hugging Face's image processors do.
        """
        return self._operation(
            "center_crop", fields, size=size, fill=fill, padding_mode=padding_mode, rounding=rounding
        )

    def trim_border(self, border_size: int, *, fields: Fields = None) -> Self:
        """Without ``border_size`` pixels at each of the four edges: timm's TrimBorder.

        Raises:
            ConfigError: it is negative, or leaves nothing of the images, where their size is known.
            DataError: of a sample: it leaves nothing of the image.
        """
        return self._operation("trim_border", fields, border_size=border_size)

    def random_crop_or_pad(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        *,
        fields: Fields = None,
    ) -> Self:
        """``size`` x ``size`` or ``(height, width)`` pixels from anywhere; a smaller image lies anywhere in them.

        timm's RandomCropOrPad. ``fill`` and ``padding_mode`` are as for :meth:`random_crop`.
        """
        return self._operation("random_crop_or_pad", fields, size=size, fill=fill, padding_mode=padding_mode)

    def random_crop(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        *,
        fields: Fields = None,
    ) -> Self:
        """``size`` x ``size`` or ``(height, width)`` pixels from anywhere in the image, padded first if asked for.

        Args:
            size: pixels.
            padding: pixels, as for :meth:`pad`.
            pad_if_needed: pads images that are smaller than ``size``; without it they raise :class:`DataError`.
            fill: 0 to 255, one value or (red, green, blue), for ``padding_mode="constant"``.
            padding_mode: ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
        """
        return self._operation(
            "random_crop",
            fields,
            size=size,
            padding=padding,
            pad_if_needed=pad_if_needed,
            fill=fill,
            padding_mode=padding_mode,
        )

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """A random part of the image, resized to ``size`` x ``size`` or ``(height, width)`` pixels.

        The part's area is ``scale`` times the image's, uniformly; its width over height is ``ratio``, uniformly in
        the logarithm; ten tries, then the largest middle part within ``ratio`` (Szegedy et al., "Going deeper with
        convolutions", as torchvision implements it).
        """
        arguments.refuse_aliased("random_resized_crop", antialias)
        return self._operation(
            "random_resized_crop", fields, size=size, scale=scale, ratio=ratio, interpolation=interpolation
        )

    def random_horizontal_flip(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Left to right, with probability ``p``."""
        return self._operation("random_horizontal_flip", fields, p=p)

    def random_vertical_flip(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Top to bottom, with probability ``p``."""
        return self._operation("random_vertical_flip", fields, p=p)

    def pad(
        self,
        padding: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        *,
        fields: Fields = None,
    ) -> Self:
        """Adds a border, in pixels: a number, (left and right, top and bottom), or (left, top, right, bottom).

        ``fill`` and ``padding_mode`` are as for :meth:`random_crop`.
        """
        if padding is None:
            raise ConfigError("pad: padding must be a number of pixels, not None")
        return self._operation("pad", fields, padding=padding, fill=fill, padding_mode=padding_mode)

    def grayscale(self, num_output_channels: int = 1, *, fields: Fields = None) -> Self:
        """Luma, in 1 or 3 channels, as ``PIL.Image.convert("L")`` has it.

        That is ITU-R BT.601 in fixed point: (19595 R + 38470 G + 7471 B + 32768) >> 16.
        """
        return self._operation("grayscale", fields, num_output_channels=num_output_channels)

    def color_jitter(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
        *,
        fields: Fields = None,
    ) -> Self:
        """Changes brightness, contrast, saturation and hue by random factors, in random order.

        A number v stands for factors in [max(0, 1 - v), 1 + v], for hue in [-v, v] with v at most 0.5 (turns of the
        colour circle); a pair is the range itself.
        """
        return self._operation(
            "color_jitter", fields, brightness=brightness, contrast=contrast, saturation=saturation, hue=hue
        )

    def normalize(
        self, mean: Sequence[float], std: Sequence[float], inplace: bool = False, *, fields: Fields = None
    ) -> Self:
        """(x - mean) / std per channel, as float32; uint8 pixels are divided by 255 first.

        One number per channel, in units of [0, 1]: see IMAGENET_MEAN and IMAGENET_STD. ``inplace`` is torchvision's
        and changes nothing here.
        """
        arguments.flag("normalize", "inplace", inplace)
        return self._operation("normalize", fields, mean=mean, std=std)

    def to_dtype(self, dtype: Any = "float32", scale: bool = False, *, fields: Fields = None) -> Self:
        """To another dtype (a word, NumPy's or torch's); ``scale=True`` divides uint8 by 255 on the way to a float."""
        return self._operation("to_dtype", fields, dtype=dtype, scale=scale)
