# SPDX-License-Identifier: Apache-2.0
"""Patches of volumes, and operations on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Self

from ... import _engine
from ...errors import ConfigError
from .. import arguments, literals
from .augmentations import Augmentations
from .operations import Fields


class Volumes(Augmentations):
    """The methods of :class:`Dataset` for volumes: N-D arrays in NIfTI, Zarr, HDF5 and .npy files.

    A sample is a whole volume until :meth:`random_crop`, :meth:`center_crop` or :meth:`grid_patches` cuts patches, of
    which only the needed part is read. All volumes of a sample, such as ``image`` and ``mask``, have the same crop
    and geometry. Values have their stored dtype; they become float32 if an operation interpolates or changes them.
    Labels (fields named ``mask...``, ``label...`` or ``seg...``, or marked ``:mask``) are never interpolated, and
    their values never change.

    Axes are those of the stored array; NIfTI's are nibabel's (x, y, z). A patch with fewer extents than its volume
    crops the last axes (for NIfTI the first ones); others are delivered whole. ``axes=`` of operations counts the last
    three axes (for NIfTI the first three) from 0.

    Raises:
        ConfigError: an argument is out of range; raised at the call, or by :attr:`schema` and :meth:`loader` if it
            depends on the volumes.
        DataError: when a sample is read: a file is damaged, volumes of a sample differ in size, or one is smaller than
            a patch.
    """

    def _has_volumes(self) -> bool:
        return any(kind == "volume" for _, kind, *_ in self._engine.roles())

    def _need_volumes(self, where: str, instead: str | None = None) -> None:
        if self._has_volumes():
            return
        advice = "" if instead is None else f"; for images, use {instead}"
        raise ConfigError(f"{where}: the samples have no volumes{advice}")

    def random_crop(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        *,
        fields: Fields = None,
        patches: int = 1,
        foreground: tuple[Any, ...] | None = None,
    ) -> Self:
        """Crops images or volumes at a random position. For volumes::

            volumes.random_crop((64, 64, 64), patches=4, foreground=("mask", 0.33))

        Args:
            size: for images pixels, ``size`` x ``size`` or ``(height, width)``; for volumes one number of voxels for
                each cropped axis.
            padding: for images, the size of the border in pixels, as for :meth:`pad`.
            pad_if_needed: pads images that are smaller than ``size``, and volumes with zeros on both sides; otherwise
                they raise :class:`DataError`.
            fill: for images, the value of the border for ``padding_mode="constant"``, from 0 to 255: one value or
                (red, green, blue).
            padding_mode: for images, ``"constant"``, ``"edge"``, ``"reflect"`` or ``"symmetric"``.
            patches: for volumes, the number of patches per volume and epoch, which are consecutive samples.
            foreground: for volumes, ``(field, share)``: this share of the patches is centred, as far as the borders
                allow, on a voxel of the label field: a label above 0 is drawn uniformly from those in the volume, and
                then one of its voxels. ``(field, share, labels)`` draws among these labels. Volumes without
                such labels are cropped at random. The voxels, at most 10,000 per label, are found when a volume is
                first used, and stored with the index.
        """
        where = "random_crop"
        count = arguments.integer(where, "patches", patches, 1)
        if not self._has_volumes():
            if count != 1 or foreground is not None:
                raise ConfigError(f"{where}: patches= and foreground= are for volumes, and the samples have none")
            return super().random_crop(size, padding, pad_if_needed, fill, padding_mode, fields=fields)
        self._refuse(
            where,
            padding=padding is not None,
            fill=_differs(fill, 0),
            padding_mode=_differs(padding_mode, "constant"),
        )
        given: dict[str, Any] = {}
        if foreground is not None:
            if not isinstance(foreground, tuple) or len(foreground) not in (2, 3):
                raise ConfigError(
                    f"{where}: foreground must be (field, share) or (field, share, labels): {foreground!r}"
                )
            field, share, *labels = foreground
            given = {"foreground": field, "share": share}
            if labels:
                given["values"] = arguments.integers(where, "foreground labels", labels[0], 0)
        return self._patches(
            where, _engine.patches(self._engine, count), "random_patch", size, pad_if_needed, fields, given
        )

    def center_crop(
        self,
        size: int | Sequence[int],
        fill: int | Sequence[int] = 0,
        padding_mode: literals.PaddingMode = "constant",
        rounding: Literal["even", "down"] = "even",
        *,
        fields: Fields = None,
    ) -> Self:
        """Crops the middle of images or volumes; smaller ones are padded on both sides, volumes with zeros.

        By default, the operation on images is equivalent to torchvision's CenterCrop, which pads with black. With
        ``fill`` and ``padding_mode`` (see :meth:`random_crop`), it equals timm's CenterCropOrPad. ``rounding`` applies
        to half of an odd difference: ``"even"`` rounds to the even number, as torchvision does; ``"down"``
        rounds down, as Hugging Face's image processors do. For volumes, ``size`` has one number of voxels for each
        cropped axis, and half of an odd difference is rounded down.
        """
        if not self._has_volumes():
            return super().center_crop(size, fill, padding_mode, rounding, fields=fields)
        where = "center_crop"
        self._refuse(
            where,
            fill=_differs(fill, 0),
            padding_mode=_differs(padding_mode, "constant"),
            rounding=_differs(rounding, "even"),
        )
        return self._patches(where, self._engine, "center_patch", size, True, fields, {})

    def grid_patches(self, size: int | Sequence[int], overlap: int | Sequence[int] = 0, pad: bool = False) -> Self:
        """Divides each volume into patches of equal size, which are consecutive samples, for evaluation.

        The dataset also has the fields ``patch_position``, int64 (axes): the voxel of the volume at which the patch
        begins; and ``volume_shape``, int64 (axes): the volume's extents along the cropped axes.

        Args:
            size: voxels, one number for each cropped axis.
            overlap: voxels by which neighbours overlap, from 0 to less than ``size``.
            pad: patches extend beyond the end of the volume, filled with zeros. By default, the last patch of each axis
                is moved back to end with the volume, and smaller volumes raise :class:`DataError` at the call.
        """
        where = "grid_patches"
        self._need_volumes(where)
        extents = _extents(where, "size", size, 1)
        overlaps = [overlap] * len(extents) if isinstance(overlap, int) else _extents(where, "overlap", overlap, 0)
        if len(overlaps) != len(extents) or any(not 0 <= o < s for o, s in zip(overlaps, extents, strict=True)):
            raise ConfigError(f"{where}: overlap must be from 0 to less than size, for each axis, got {overlap!r}")
        pads = arguments.flag(where, "pad", pad)
        engine = _engine.grid_patches(self._engine, extents, overlaps, pads)
        return self._patches(where, engine, "grid_patch", extents, pads, None, {})

    def _patches(
        self, where: str, engine: Any, name: str, size: Any, pad: bool, fields: Fields, given: dict[str, Any]
    ) -> Self:
        self._refuse(where, fields=fields is not None)
        if _crops(self._engine):
            raise ConfigError(f"{where}: the samples already are patches")
        values = {"size": _extents(where, "size", size, 1), "pad": arguments.flag(where, "pad_if_needed", pad), **given}
        cropped = self._with(engine)._operation(name, None, **values)
        if name == "random_patch":
            _warn_of_chunks(where, cropped._engine.explain())
        return cropped

    def _refuse(self, where: str, **given: bool) -> None:
        for name, is_given in given.items():
            if is_given:
                raise ConfigError(f"{where}: {name} is not supported for volumes")

    def random_affine(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: int | Sequence[int] | None = 0,
        center: Sequence[float] | None = None,
        *,
        fields: Fields = None,
        p: float = 1.0,
    ) -> Self:
        """Rotates, translates, scales and shears images around their centre, or rotates and scales patches of volumes.

        The size does not change. Patches of volumes are read from as much of the volume as the rotated patch covers, so
        that only voxels outside the volume are filled. Images are interpolated linearly; labels are those of the
        nearest voxel.

        Args:
            degrees: range of the clockwise angle, (low, high), or a number d for (-d, d); 0 disables rotation. Volumes:
                an angle is drawn for each of the three axes.
            translate: maximum translation, as fractions (0 to 1) of width and height; the drawn translation is in whole
                pixels. Not for volumes.
            scale: range of the factor, (low, high), above 0; larger factors magnify. For volumes its inverse is drawn
                uniformly.
            shear: range of the shear in degrees: s for (-s, s) along x, (low, high) along x, or (low, high, low, high)
                along x and y. Not for volumes.
            interpolation: ``"nearest"``, ``"bilinear"``, ``"bicubic"`` or ``"random"``. Not for volumes.
            fill: value of pixels or voxels from outside the image or volume. Labels are 0 there.
            center: (x, y) in pixels from the top left; None is the middle. Not for volumes.
            p: for volumes, the probability that a sample is changed.
        """
        where = "random_affine"
        p = arguments.real(where, "p", p)
        if not self._has_volumes():
            if p != 1:
                raise ConfigError(f"{where}: p= is for volumes; use random_apply for images")
            return super().random_affine(degrees, translate, scale, shear, interpolation, fill, center, fields=fields)
        self._refuse(
            where,
            translate=translate is not None,
            shear=shear is not None,
            interpolation=_differs(interpolation, "nearest"),
            center=center is not None,
            fields=fields is not None,
        )
        low, high = arguments.angles(where, "degrees", degrees)
        return self._operation(
            "random_affine_3d",
            None,
            degrees=(low, high),
            scale=(1.0, 1.0) if scale is None else arguments.low_high(where, "scale", scale),
            p=p,
            fill=0.0 if fill is None else fill,
        )

    def random_zoom(self, scale: Sequence[float] = (0.7, 1.4), p: float = 0.5, fill: float = 0.0) -> Self:
        """Magnifies patches of volumes by a random factor, with probability ``p``: see :meth:`random_affine`."""
        self._need_volumes("random_zoom", "random_affine(0, scale=(low, high))")
        factor = arguments.low_high("random_zoom", "scale", scale)
        return self._operation("random_affine_3d", None, degrees=(0.0, 0.0), scale=factor, p=p, fill=fill)

    def normalize(
        self,
        mean: Sequence[float] | float,
        std: Sequence[float] | float,
        inplace: bool = False,
        *,
        fields: Fields = None,
    ) -> Self:
        """Computes (x - mean) / std, as float32. Pixels of images are divided by 255 first; values of volumes are not.

        Args:
            mean: for images one number per channel, in units of [0, 1]: see IMAGENET_MEAN. For volumes one number, in
                the units of the stored values.
            std: as for ``mean``.
            inplace: accepted for compatibility with torchvision, without effect.
            fields: names of the fields, by default all images, or all volumes without labels.
        """
        if self._has_volumes():
            numbers = [_one_number("normalize", name, value) for name, value in (("mean", mean), ("std", std))]
            return self._operation("standardize", fields, mean=numbers[0], std=numbers[1])
        return super().normalize(mean, std, inplace, fields=fields)  # type: ignore[arg-type]  # the engine checks them

    def random_flip(self, axes: Sequence[int] = (0, 1, 2), p: float = 0.5) -> Self:
        """Flips patches of volumes along each of the axes with probability ``p``."""
        self._need_volumes("random_flip", "random_horizontal_flip or random_vertical_flip")
        return self._operation("random_flip", None, axes=axes, p=p)

    def random_rotate90(self, axes: Sequence[int] = (0, 1), p: float = 0.5) -> Self:
        """Rotates patches of volumes by 90, 180 or 270 degrees with probability ``p``, as ``numpy.rot90`` does.

        Args:
            axes: the two axes of the plane, which must have the same number of voxels.
        """
        self._need_volumes("random_rotate90", "random_rotation")
        return self._operation("random_rotate90", None, axes=axes, p=p)

    def random_gamma(
        self,
        gamma: Sequence[float] = (0.7, 1.5),
        p: float = 0.3,
        invert: bool = False,
        retain_stats: bool = False,
        *,
        fields: Fields = None,
    ) -> Self:
        """Raises the values of volumes, scaled to the range of the patch, to a random power.

        Args:
            gamma: ``(low, high)``, the range of the exponent, which is below and above 1 with equal probability.
            p: probability that a patch is changed.
            invert: applies the exponent to the negated values.
            retain_stats: restores the mean and the standard deviation of the patch.
        """
        self._need_volumes("random_gamma")
        return self._operation("random_gamma", fields, gamma=gamma, p=p, invert=invert, retain_stats=retain_stats)

    def random_gaussian_noise(
        self, std: Sequence[float] = (0.0, 0.1), p: float = 0.1, *, fields: Fields = None
    ) -> Self:
        """Adds normal noise, with probability ``p``; its standard deviation is drawn uniformly from ``std``."""
        self._need_volumes("random_gaussian_noise")
        return self._operation("random_gaussian_noise", fields, std=std, p=p)

    def random_gaussian_blur(
        self, sigma: Sequence[float] = (0.5, 1.0), p: float = 0.2, *, fields: Fields = None
    ) -> Self:
        """Blurs volumes with a Gaussian, with probability ``p``; ``sigma``, in voxels, is drawn for each axis."""
        self._need_volumes("random_gaussian_blur", "gaussian_blur")
        return self._operation("random_gaussian_blur", fields, sigma=sigma, p=p)

    def random_brightness(
        self, factor: Sequence[float] = (0.75, 1.25), p: float = 0.15, *, fields: Fields = None
    ) -> Self:
        """Multiplies volumes by a factor, with probability ``p``; it is below and above 1 with equal probability."""
        self._need_volumes("random_brightness", "color_jitter(brightness=...)")
        return self._operation("random_brightness", fields, factor=factor, p=p)

    def random_contrast(
        self,
        factor: Sequence[float] = (0.75, 1.25),
        p: float = 0.15,
        preserve_range: bool = True,
        *,
        fields: Fields = None,
    ) -> Self:
        """Multiplies the distance of each value from the patch's mean by a random factor.

        Args:
            factor: ``(low, high)``; it is below and above 1 with equal probability.
            p: probability that a patch is changed.
            preserve_range: clips the result to the range of the patch.
        """
        self._need_volumes("random_contrast", "color_jitter(contrast=...)")
        return self._operation("random_contrast", fields, factor=factor, p=p, preserve_range=preserve_range)

    def random_low_resolution(
        self, scale: Sequence[float] = (0.5, 1.0), p: float = 0.25, *, fields: Fields = None
    ) -> Self:
        """Simulates a low resolution, with probability ``p``: shrinks a patch by a factor drawn uniformly from
        ``(low, high)``, with nearest voxels, and enlarges it linearly."""
        self._need_volumes("random_low_resolution")
        return self._operation("random_low_resolution", fields, scale=scale, p=p)


def _warn_of_chunks(where: str, explanation: str) -> None:
    """Warns if the chunks of a volume are much larger than the patches."""
    for line in explanation.splitlines():
        if "the chunks fit badly" in line:
            warnings.warn(f"{where}: {line}", stacklevel=5)
            return


def _crops(engine: Any) -> bool:
    names = {operation.partition("(")[0] for operation in engine.operations()}
    return not names.isdisjoint(("random_crop", "center_crop", "grid_patches"))


def _differs(value: Any, default: Any) -> bool:
    return type(value) is not type(default) or bool(value != default)


def _extents(where: str, name: str, value: Any, low: int) -> list[int]:
    if isinstance(value, int):
        raise ConfigError(f"{where}: {name} must have one number of voxels for each cropped axis, not {value!r}")
    return arguments.integers(where, name, value, low)


def _one_number(where: str, name: str, value: Any) -> float:
    if arguments.is_sequence(value) and len(value) == 1:
        value = value[0]
    return arguments.real(where, name, value)
