# SPDX-License-Identifier: Apache-2.0
"""Operations on the images and masks of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from ..._engine import Dataset as EngineDataset
from ...errors import ConfigError
from .. import arguments, literals, plugins
from .operation_arguments import engine_values, value_of_plugin

Fields = str | Sequence[str] | None  # names of fields, or None for every field that the operation supports


class Operations:
    """The image and mask operations of :class:`Dataset`. Every operation returns a new dataset."""

    _engine: EngineDataset

    def _with(self, engine: EngineDataset) -> Self:
        raise NotImplementedError

    def _operation(self, name: str, fields: Fields, **given: Any) -> Self:
        """Appends the engine's operation with this name. Omitted arguments have the operation's default values."""
        names = arguments.field_names(name, fields)
        return self._with(self._engine.with_operation(name, names, engine_values(name, given)))

    def decode(
        self,
        mode: str = "RGB",
        *,
        fidelity: literals.Fidelity = "exact",
        apply_exif_orientation: bool = False,
        device: str | None = None,
        dtype: literals.ImageDtype = "uint8",
        page: int = 0,
        fields: Fields = None,
    ) -> Self:
        """Decodes to uint8 pixels: ``"RGB"`` (3 channels) or ``"L"`` (1 channel). If omitted, images decode to RGB.

        Grey, palette, alpha, CMYK and 16-bit images are converted as ``PIL.Image.convert`` does.

        Args:
            mode: ``"RGB"`` or ``"L"``.
            fidelity: ``"exact"`` matches Pillow's pixels bit for bit. ``"fast"`` decodes JPEGs at a reduced scale if
                the next step shrinks the image or a crop of it a lot, and converts colours after the resize;
                docs/fidelity.md lists the pixel differences. All other images are still decoded exactly.
            apply_exif_orientation: Rotates each image by its EXIF orientation before any other step, as
                ``PIL.ImageOps.exif_transpose`` does. Off by default, as in torchvision: masks and boxes of most
                datasets refer to the stored pixels.
            device: ``"cuda"`` decodes baseline JPEGs with nvJPEG on the GPU that receives the loader's batches. nvJPEG
                is in the package ``nvidia-nvjpeg-cu12``, or ``nvidia-nvjpeg`` for CUDA 13. The pixels are nearly the
                same as those from the CPU (docs/fidelity.md). The CPU decodes all other images, and samples read
                without a loader. ``cache("device")`` must support all later operations. None, the default, decodes on
                the CPU.
            dtype: ``"uint8"``, or the values that the files store, unscaled, with as many channels as stored:
                ``"uint16"`` for images of 8 or 16 bits, ``"float32"`` for any numbers, or ``"native"`` for the files'
                own dtype, which must be the same in all files. PNGs and TIFFs may have any dtype; all other formats
                have 8 bits. Palettes of PNGs become their colours. Crops, resizes, flips, rotations, :meth:`normalize`
                and :meth:`window` support such images; docs/deep-images.md describes them.
            page: the page of a TIFF, from 0. Needs a ``dtype`` other than ``"uint8"``.

        Raises:
            ConfigError: an argument has a value that is not listed above, or ``device`` is combined with
                ``fidelity="fast"``. :meth:`loader` raises this error if its own ``device`` is not ``"cuda"``, or if
                nvJPEG is missing; the message names the package.
        """
        if device is not None:
            arguments.choice("decode", "device", device, ("cuda",))
            if fidelity != "exact":
                raise ConfigError('decode: fidelity="fast" runs on the CPU: pass it or device="cuda", not both')
            from ...machine import nvjpeg  # imports ctypes, which is slow

            nvjpeg.load_packaged()
        else:
            arguments.choice("decode", "fidelity", fidelity, ("exact", "fast"))
        return self._operation(
            "decode",
            fields,
            mode=mode.upper() if isinstance(mode, str) else mode,
            fidelity=fidelity if device is None else "nvjpeg",
            apply_exif_orientation=apply_exif_orientation,
            dtype=dtype,
            page=page,
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
        """Resizes to ``(height, width)`` pixels, or one edge to a number of pixels, preserving the aspect ratio.

        Args:
            size: pixels; an int sets the smaller edge. None sets the larger edge to ``max_size``.
            interpolation: ``"nearest"``, ``"box"``, ``"bilinear"``, ``"bicubic"``, ``"lanczos"``, or ``"random"``,
                which chooses bilinear or bicubic at random for each image. torchvision's InterpolationMode and Pillow's
                Resampling are also accepted. ``"torch_bilinear"`` and ``"torch_bicubic"`` match torch's results for
                uint8 tensors bit for bit (``interpolate(..., antialias=True)``, which torchvision v2 calls).
            max_size: upper limit of the larger edge, pixels; only valid if ``size`` is an int or None.
            antialias: False raises an error: as in Pillow, every filter except ``"nearest"`` antialiases.
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
        """Crops the middle ``size`` x ``size`` or ``(height, width)`` pixels; smaller images are padded on both sides.

        By default, the operation is equivalent to torchvision's CenterCrop, which pads with black. With ``fill`` and
        ``padding_mode`` (see :meth:`random_crop`), it is equivalent to timm's CenterCropOrPad. ``rounding`` applies to
        half of an odd difference: ``"even"`` rounds to the even number, as torchvision does; ``"down"`` rounds down, as
        Hugging Face's image processors do.
        """
        return self._operation(
            "center_crop", fields, size=size, fill=fill, padding_mode=padding_mode, rounding=rounding
        )

    def apply(self, operation: str, *, fields: Fields = None, **arguments: Any) -> Self:
        """Applies an operation of a plugin (:func:`feedline.load_plugin`) or one of :func:`feedline.operation`.

        An operation of a plugin changes 8-bit pixels of 1 or 3 channels in the engine's threads. Masks, boxes and
        keypoints cannot follow if it moves pixels or changes the size. A function in Python is called as by
        :meth:`map`, on the image by default.

        Args:
            operation: the registered name.
            fields: names of the fields; for functions in Python exactly one, by default the image.
            arguments: for plugins numbers, by the names that the plugin declares; omitted ones have the plugin's
                default. For functions in Python, their keyword arguments.

        Raises:
            ConfigError: no operation or no argument has this name, or the plugin refuses a value.
            DataError: the operation fails for a sample.
        """
        if plugins.is_operation(operation):
            return self._apply_function(operation, fields, arguments)
        values = {name: value_of_plugin("apply", name, value) for name, value in arguments.items()}
        return self._operation("apply", fields, operation=operation, names=list(values), values=list(values.values()))

    def _apply_function(self, operation: str, fields: Fields, given: Mapping[str, Any]) -> Self:
        raise ConfigError(
            f"apply: {operation!r} is a Python function, which only datasets support: call dataset.apply({operation!r})"
        )

    def trim_border(self, border_size: int, *, fields: Fields = None) -> Self:
        """Removes ``border_size`` pixels from each of the four edges, as timm's TrimBorder does.

        Raises:
            ConfigError: ``border_size`` is negative, or removes the whole image and the image size is known.
            DataError: ``border_size`` removes the whole image of a sample.
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
        """Crops ``size`` x ``size`` or ``(height, width)`` pixels at a random position; smaller images are padded.

        A smaller image is placed at a random position in the result, as in timm's RandomCropOrPad. ``fill`` and
        ``padding_mode`` are as for :meth:`random_crop`.
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
        """Crops ``size`` x ``size`` or ``(height, width)`` pixels at a random position, after optional padding.

        Args:
            size: pixels.
            padding: size of the border in pixels, as for :meth:`pad`.
            pad_if_needed: pads images that are smaller than ``size``; otherwise they raise :class:`DataError`.
            fill: value of the border for ``padding_mode="constant"``, from 0 to 255: one value or (red, green, blue).
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
        """Crops a random part of the image and resizes it to ``size`` x ``size`` or ``(height, width)`` pixels.

        ``scale`` is the range of the part's area as a fraction of the image's area, drawn uniformly. ``ratio`` is the
        range of the part's aspect ratio (width divided by height), drawn uniformly in the logarithm. After ten failed
        attempts, the crop is the largest central part within ``ratio`` (Szegedy et al., "Going deeper with
        convolutions", as implemented in torchvision).
        """
        arguments.refuse_aliased("random_resized_crop", antialias)
        return self._operation(
            "random_resized_crop", fields, size=size, scale=scale, ratio=ratio, interpolation=interpolation
        )

    def random_horizontal_flip(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Flips the image left to right with probability ``p``."""
        return self._operation("random_horizontal_flip", fields, p=p)

    def random_vertical_flip(self, p: float = 0.5, *, fields: Fields = None) -> Self:
        """Flips the image top to bottom with probability ``p``."""
        return self._operation("random_vertical_flip", fields, p=p)

    def pad(
        self,
        padding: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        *,
        fields: Fields = None,
    ) -> Self:
        """Adds a border of ``padding`` pixels: one number, (left and right, top and bottom), or (left, top, right,
        bottom).

        ``fill`` and ``padding_mode`` are as for :meth:`random_crop`.
        """
        if padding is None:
            raise ConfigError("pad: padding must be a number of pixels or a tuple of 2 or 4 numbers, not None")
        return self._operation("pad", fields, padding=padding, fill=fill, padding_mode=padding_mode)

    def grayscale(self, num_output_channels: int = 1, *, fields: Fields = None) -> Self:
        """Converts to luma in 1 or 3 channels, as ``PIL.Image.convert("L")`` does.

        The formula is ITU-R BT.601 in fixed point: (19595 R + 38470 G + 7471 B + 32768) >> 16.
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

        A number v means a factor in [max(0, 1 - v), 1 + v]; for hue, it means a shift in [-v, v], in turns of the
        colour circle, with v at most 0.5. A pair (low, high) sets the range itself.
        """
        return self._operation(
            "color_jitter", fields, brightness=brightness, contrast=contrast, saturation=saturation, hue=hue
        )

    def normalize(
        self, mean: Sequence[float], std: Sequence[float], inplace: bool = False, *, fields: Fields = None
    ) -> Self:
        """Computes (x - mean) / std per channel, as float32; uint8 pixels are divided by 255 first.

        ``mean`` and ``std`` have one number per channel, in units of [0, 1]: see IMAGENET_MEAN and IMAGENET_STD. Stored
        values, ``decode(dtype=...)``, are not divided: ``mean`` and ``std`` are in their unit.
        ``inplace`` is accepted for compatibility with torchvision and has no effect.
        """
        arguments.flag("normalize", "inplace", inplace)
        return self._operation("normalize", fields, mean=mean, std=std)

    def window(self, level: float, width: float, *, fields: Fields = None) -> Self:
        """Computes clip((x - level + width / 2) / width, 0, 1) as float32: a window of values, as for CT images.

        Args:
            level: the middle of the window, in the unit of the values: the stored unit after ``decode(dtype=...)``, or
                0 to 255 for uint8 pixels.
            width: the width of the window in the same unit, above 0.
        """
        return self._operation("window", fields, level=level, width=width)

    def to_dtype(self, dtype: Any = "float32", scale: bool = False, *, fields: Fields = None) -> Self:
        """Converts to a dtype (a name, or NumPy's or torch's); ``scale=True`` divides uint8 by 255 for floats."""
        return self._operation("to_dtype", fields, dtype=dtype, scale=scale)
