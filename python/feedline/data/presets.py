# SPDX-License-Identifier: Apache-2.0
"""Published training and evaluation recipes: each is a dataset with its operations, and arguments for loader().

::

    train, options = feedline.presets.imagenet_train("imagenet/train")
    loader = train.loader(**options)

The result is an ordinary dataset and an ordinary dict, and both may be changed: ``train.operations``,
``train.explain()`` and ``loader.explain()`` show their contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any, NamedTuple

from ..errors import ConfigError
from ..imagenet import IMAGENET_MEAN, IMAGENET_STD
from . import arguments, sources
from .dataset import Dataset
from .memory.sequences import tokens
from .ops.chain import Chain, chain

# OpenAI's CLIP statistics, also used by open_clip's models (OPENAI_DATASET_MEAN and OPENAI_DATASET_STD there).
CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

Source = Dataset | str | PathLike[str] | Sequence[str | PathLike[str]]


class Preset(NamedTuple):
    """A dataset and arguments for its ``loader()``."""

    dataset: Dataset
    loader: dict[str, Any]


def imagenet_train(source: Source, *, size: int = 224, batch_size: int = 32) -> Preset:
    """Returns torchvision's classification training recipe with its default options.

    The recipe is ``ClassificationPresetTrain(crop_size=224)`` in ``references/classification/presets.py``, with the
    options of ``train.py`` that produced ResNet-50's IMAGENET1K_V1 weights. The recipe applies a random resized crop
    (bilinear), a horizontal flip with probability 0.5, and ImageNet's mean and standard deviation. Images are float32
    (3, size, size).

    Args:
        source: a source for :func:`feedline.open`, or a dataset without operations.
        size: edge length in pixels.
        batch_size: samples per rank; train.py uses 32.

    Raises:
        ConfigError: as for :func:`feedline.open` and the operations.
    """
    train = _opened(source).random_resized_crop(size).random_horizontal_flip().normalize(IMAGENET_MEAN, IMAGENET_STD)
    return Preset(train, {"batch_size": batch_size, "shuffle": True})


def imagenet_train_v2(
    source: Source, *, size: int = 176, batch_size: int = 128, num_classes: int | None = None
) -> Preset:
    """Returns torchvision's newer recipe, which produced ResNet-50's IMAGENET1K_V2 weights.

    From ``references/classification``: ``--auto-augment ta_wide --random-erase 0.1 --mixup-alpha 0.2 --cutmix-alpha 1.0
    --train-crop-size 176 --ra-sampler --ra-reps 4``. The original's ``--label-smoothing 0.1`` is an argument of the
    loss. Targets are float32 (rows, classes).

    Args:
        source: the same as for :func:`imagenet_train`.
        size: edge length in pixels.
        batch_size: samples per rank; the original used 128 on each of 8 ranks.
        num_classes: number of classes; by default the number of the source's class names.

    Raises:
        ConfigError: as for :func:`imagenet_train`.
    """
    train = _opened(source).random_resized_crop(size).random_horizontal_flip().trivial_augment_wide()
    train = train.normalize(IMAGENET_MEAN, IMAGENET_STD).random_erasing(0.1)
    options: dict[str, Any] = {"batch_size": batch_size, "shuffle": True, "repeat": 4, "mixup": 0.2, "cutmix": 1.0}
    return Preset(train, options | ({} if num_classes is None else {"num_classes": num_classes}))


def imagenet_eval(source: Source, *, size: int = 224, resize: int = 256, batch_size: int = 32) -> Preset:
    """Returns torchvision's evaluation recipe: ``ClassificationPresetEval(crop_size=224, resize_size=256)``.

    As in ``references/classification/presets.py``, the recipe resizes the smaller edge to ``resize`` pixels (bilinear),
    crops the central ``size`` x ``size`` pixels, and normalizes by ImageNet's mean and standard deviation. Every sample
    appears once, in order; ranks may differ by one batch.

    Args:
        source: the same as for :func:`imagenet_train`.
        size, resize: edge lengths in pixels; the IMAGENET1K_V2 weights of ResNets were evaluated with ``resize=232``.
        batch_size: samples per rank.

    Raises:
        ConfigError: the same errors as :func:`imagenet_train`.
    """
    evaluated = _opened(source).resize(resize).center_crop(size).normalize(IMAGENET_MEAN, IMAGENET_STD)
    return Preset(evaluated, {"batch_size": batch_size, "uneven": "exact"})


def clip_train(source: Source, *, size: int = 224, batch_size: int = 64) -> Preset:
    """Returns open_clip's default training transform.

    The transform is ``image_transform(size, is_train=True)`` in ``open_clip/transform.py`` without augmentation
    settings: a bicubic random resized crop of 0.9 to 1 of the area, and CLIP's mean and standard deviation. The default
    batch size is the one in open_clip's ``main.py``.

    Args:
        source: as for :func:`imagenet_train`; for tars also ``feedline.open(tars, fields=["jpg;png;webp", "txt"])``.
        size: edge length in pixels.
        batch_size: samples per rank.

    Raises:
        ConfigError: the same errors as :func:`imagenet_train`.
    """
    train = _opened(source).random_resized_crop(size, scale=(0.9, 1.0), interpolation="bicubic")
    return Preset(train.normalize(CLIP_MEAN, CLIP_STD), {"batch_size": batch_size, "shuffle": True, "drop_last": True})


def clip_eval(source: Source, *, size: int = 224, batch_size: int = 64) -> Preset:
    """Returns CLIP's own preprocessing: a bicubic resize of the smaller edge to ``size``, a centre crop, and
    normalization.

    The same as ``_transform`` in OpenAI's ``clip/clip.py`` and ``image_transform(size, is_train=False)`` in open_clip.

    Args:
        source: the same as for :func:`imagenet_train`.
        size: edge length in pixels.
        batch_size: samples per rank.

    Raises:
        ConfigError: the same errors as :func:`imagenet_train`.
    """
    evaluated = _opened(source).resize(size, interpolation="bicubic").center_crop(size).normalize(CLIP_MEAN, CLIP_STD)
    return Preset(evaluated, {"batch_size": batch_size, "uneven": "exact"})


def simclr(source: Source, *, size: int = 224, strength: float = 1.0, batch_size: int = 256) -> Preset:
    """Returns SimCLR's two views of an image, from the same chain: fields ``image_0`` and ``image_1``.

    From appendix A of Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations" (ICML 2020):
    a random resized crop (bicubic), a horizontal flip, colour jitter with probability 0.8 and factors of 0.8, 0.8, 0.8
    and 0.2 times ``strength``, greyscale with probability 0.2, and blur with probability 0.5 and a kernel a tenth as
    long as the image's edge. Images are float32 (3, size, size) from 0 to 1.

    Args:
        source: the same as for :func:`imagenet_train`.
        size: edge length in pixels.
        strength: strength of the colour jitter (s in the paper).
        batch_size: samples per rank.

    Raises:
        ConfigError: the same errors as :func:`imagenet_train`.
    """
    strength = arguments.real("simclr", "strength", strength)
    size = arguments.integer("simclr", "size", size, low=1)
    jitter = chain().color_jitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength)
    kernel = size // 10 // 2 * 2 + 1
    view = (
        chain()
        .random_resized_crop(size, interpolation="bicubic")
        .random_horizontal_flip()
        .random_apply(jitter, p=0.8)
        .random_grayscale(0.2)
        .random_apply(chain().gaussian_blur(kernel, sigma=(0.1, 2.0)), p=0.5)
    )
    train = _opened(source).views([view, view]).to_dtype("float32", scale=True)
    return Preset(train, {"batch_size": batch_size, "shuffle": True, "drop_last": True})


def dino(
    source: Source, *, size: int = 224, local_size: int = 96, local_crops: int = 8, batch_size: int = 64
) -> Preset:
    """Returns DINOv2's crops, float32: ``global_a``, ``global_b`` (3, size, size) and ``local`` (local_crops, 3, ...).

    The recipe is in ``dinov2/data/augmentations.py``, with the crop scales of ``ssl_default_config.yaml`` (0.32 to 1
    and 0.05 to 0.32). Every crop is bicubic and randomly flipped, has colour jitter with probability 0.8, and is grey
    with probability 0.2. The first and second large crops and the small crops are blurred (kernel 9) with probabilities
    1, 0.1 and 0.5; the second large crop is solarized with probability 0.2. All are normalized by ImageNet's mean and
    standard deviation.

    Args:
        source: the same as for :func:`imagenet_train`.
        size, local_size: edge lengths in pixels.
        local_crops: number of small crops per image.
        batch_size: samples per rank.

    Raises:
        ConfigError: the same errors as :func:`imagenet_train`.
    """

    def crop(edge: int, low: float, high: float, blurred: float) -> Chain:
        return (
            chain()
            .random_resized_crop(edge, scale=(low, high), interpolation="bicubic")
            .random_horizontal_flip()
            .random_apply(chain().color_jitter(0.4, 0.4, 0.2, 0.1), p=0.8)
            .random_grayscale(0.2)
            .random_apply(chain().gaussian_blur(9, sigma=(0.1, 2.0)), p=blurred)
        )

    train = _opened(source).views(
        global_a=crop(size, 0.32, 1.0, 1.0),
        global_b=crop(size, 0.32, 1.0, 0.1).random_solarize(128, p=0.2),
        local=(crop(local_size, 0.05, 0.32, 0.5), local_crops),
    )
    options = {"batch_size": batch_size, "shuffle": True, "drop_last": True}
    return Preset(train.normalize(IMAGENET_MEAN, IMAGENET_STD), options)


def detection(source: Source, *, batch_size: int = 4) -> Preset:
    """Returns torchvision's SSD training recipe: lists of images (float32 from 0 to 1), of boxes, and of the fields
    that belong to the boxes.

    From ``references/detection/presets.py``, ``data_augmentation="ssd"``: photometric distortion, zooming out (filled
    with 123, 117, 104), a crop by boxes, a horizontal flip, and sanitized boxes. Image sizes vary, because
    torchvision's detection models resize their input.

    Args:
        source: a dataset with an image and boxes: ``feedline.open(tars, fields=["jpg", "boxes.npy:boxes", ...])``.
        batch_size: samples per rank.

    Raises:
        ConfigError: the dataset has no boxes.
    """
    train = _opened(source).random_photometric_distort().random_zoom_out(fill=(123, 117, 104)).random_iou_crop()
    train = train.random_horizontal_flip().sanitize_bounding_boxes().to_dtype("float32", scale=True).collate("list")
    return Preset(train, {"batch_size": batch_size, "shuffle": True})


def yolo(
    source: Source,
    *,
    size: int = 640,
    batch_size: int = 16,
    mosaic: bool = True,
    scale: float = 0.5,
    translate: float = 0.1,
) -> Preset:
    """Returns Ultralytics' training recipe for YOLO detectors: uint8 images (3, size, size), and lists of boxes
    (float32, left, top, right, bottom in pixels) and of labels.

    From ``v8_transforms`` in ``ultralytics/data/augment.py`` and the defaults in ``cfg/default.yaml``: a mosaic of four
    photos (``mosaic: 1.0``), scaling by 0.5 to 1.5, translation by up to a tenth, a horizontal flip with probability
    0.5, and changes of brightness (``hsv_v: 0.4``), saturation (``hsv_s: 0.7``) and hue (``hsv_h: 0.015``).

    Differences: the other three photos come from the whole dataset, not from recent batches; colours are drawn for each
    photo instead of each mosaic, and saturation and hue change as in torchvision's ColorJitter; photos are resized as
    by Pillow. Ultralytics disables the mosaic in the last 10 epochs (``close_mosaic: 10``): use a second loader with
    ``mosaic=False`` for these. The trainer divides images by 255 on the GPU.

    Args:
        source: a dataset with the fields ``image``, ``boxes`` and ``labels``, or a source that opens as one, such as
            ``data.yaml`` of a YOLO set or a COCO file.
        size: edge length in pixels.
        batch_size: samples per rank.
        mosaic: False fits single photos into ``size`` (LetterBox), with the other changes.
        scale: maximum change of the scale, 0 to 1.
        translate: maximum translation, as a fraction of ``size``.

    Raises:
        ConfigError: a field does not exist, or an argument is out of range.
    """
    size = arguments.integer("yolo", "size", size, low=1)
    scale, translate = arguments.real("yolo", "scale", scale), arguments.real("yolo", "translate", translate)
    if not (0 <= scale < 1 and 0 <= translate <= 1):
        raise ConfigError(f"yolo: scale={scale} must be at least 0 and below 1, and translate={translate} from 0 to 1")
    opened, options = _opened(source), {"batch_size": batch_size, "shuffle": True}
    missing = [name for name in ("image", "boxes", "labels") if name not in opened.schema]
    if missing:
        raise ConfigError(f"yolo: the dataset has no field {missing[0]!r}; the fields are {', '.join(opened.schema)}")
    if not mosaic:
        train = opened.letterbox(size).color_jitter(0.4, 0, 0.7, 0.015)
        train = train.random_affine(
            0, translate=(translate, translate), scale=(1 - scale, 1 + scale), interpolation="bilinear", fill=114
        )
        return Preset(train.random_horizontal_flip().sanitize_bounding_boxes(2, labels="labels"), options)
    from .mosaic import Mosaic  # imports NumPy

    photos = opened.resize_keep_ratio(size, longest=1.0).color_jitter(0.4, 0, 0.7, 0.015)
    joined = photos.map(Mosaic(photos, size, scale=scale, translate=translate, flip=0.5), seeded=True)
    return Preset(joined.collate("list", fields=("boxes", "labels")), options)


def text_classification(
    source: Source, tokenizer: Any, *, text: str = "text", max_length: int = 128, batch_size: int = 8
) -> Preset:
    """Returns the data of Hugging Face's fine-tuning example: ``input_ids``, int64, padded with zeros to the longest
    text of the batch, their ``input_ids_length``, and the other fields.

    From ``examples/pytorch/text-classification/run_glue.py`` with ``--pad_to_max_length False``: texts are cut off
    after ``max_length`` tokens (``--max_seq_length 128``). The attention mask is
    ``torch.arange(width) < input_ids_length[:, None]``.

    Args:
        source: a source for :func:`feedline.open` with a text field, or a dataset without operations.
        tokenizer: as for :meth:`Dataset.tokenize`.
        text: field with the text.
        max_length: maximum number of tokens of a text.
        batch_size: samples per rank.

    Raises:
        ConfigError: as for :meth:`Dataset.tokenize`.
    """
    train = _opened(source).tokenize(tokenizer, field=text, max_length=max_length)
    return Preset(train, {"batch_size": batch_size, "shuffle": True})


def on_cluster(preset: Preset, *, device: Any = None, memory_budget: int | str | None = None) -> Preset:
    """Returns a preset for unattended jobs on a shared training platform, such as Kubernetes or Slurm.

    Bad samples are skipped, up to 1 % of the dataset; a loader that delivers nothing for 10 minutes raises an error, so
    that the platform restarts the job. Threads, prefetching and page-locking need no arguments: the loader
    starts a thread for each CPU that affinity and quota allow, prefetches within ``memory_budget``, and page-locks
    batches if ``device`` is a GPU.

    Args:
        preset: any of this module's presets.
        device: as for :meth:`Dataset.loader`, such as ``"cuda"``.
        memory_budget: as for :meth:`Dataset.loader`; None derives it from the free memory of the machine and container.

    Raises:
        ConfigError: the dataset's length cannot be determined.
    """
    budget = max(len(preset.dataset) // 100, 1)
    options = {"on_error": "skip", "error_budget": budget, "timeout": 600.0, "memory_budget": memory_budget}
    return Preset(preset.dataset, preset.loader | options | ({} if device is None else {"device": device}))


def llm_pretraining(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    window: int = 1024,
    dtype: Any = None,
    stride: int = 1,
    separator: int | None = None,
    batch_size: int = 12,
) -> Preset:
    """Returns nanoGPT's recipe for GPT-2 (124M): ``x`` and ``y`` are int64 (window,), and ``y`` is shifted by one
    token.

    As in ``get_batch`` and the defaults of ``train.py``, windows of 1024 tokens (``block_size``) begin at any position
    in a file of uint16 tokens. nanoGPT draws positions with replacement; here an epoch contains each position once, in
    a random order that is never stored as a list.

    Args:
        source: token files for :func:`feedline.tokens`, such as the ``train.bin`` that nanoGPT's ``prepare.py`` writes.
        window: tokens per sample.
        dtype: dtype of raw files; None means uint16. A ``.npy`` file specifies its dtype.
        stride: tokens between the starts of windows; pass the value of ``window`` for windows that do not overlap.
        separator: the token that ends a document: 50256 in GPT-2's vocabulary. If given, documents are packed into
            windows with a field ``document``, and ``y`` is -100 if the next token belongs to another document, as in
            :func:`feedline.tokens`; None lets attention and loss cross documents, as nanoGPT does.
        batch_size: samples per rank; nanoGPT uses 12, with 40 accumulation steps over all ranks.

    Raises:
        ConfigError: the same errors as :func:`feedline.tokens`.
        StorageError: a file cannot be opened.
    """
    files = [source] if isinstance(source, str | PathLike) or not isinstance(source, Sequence) else source
    if dtype is None and not all(isinstance(file, str | PathLike) and fspath(file).endswith(".npy") for file in files):
        dtype = "uint16"
    train = tokens(source, window=window, dtype=dtype, stride=stride, separator=separator)
    return Preset(train, {"batch_size": batch_size, "shuffle": True, "drop_last": True})


def _opened(source: Source) -> Dataset:
    return source if isinstance(source, Dataset) else sources.open(source)


def nnunet_train(
    source: Any,
    *,
    size: Sequence[int] = (128, 128, 128),
    batch_size: int = 2,
    labels: str = "mask",
    rotation: float = 30.0,
    mirror_axes: Sequence[int] = (0, 1, 2),
) -> Preset:
    """Returns nnU-Net's default training augmentation for 3-D patches, with its probabilities and distributions.

    The recipe is ``nnUNetTrainer.get_training_transforms`` (nnU-Net 2.5, batchgeneratorsv2 0.3) for isotropic patches
    and one channel: rotation around each axis and zoom, each with probability 0.2; noise, blur, brightness, contrast,
    low resolution, gamma of the negated and of the plain values; mirroring. A third of the patches are centred on
    foreground. Images are float32 of shape `size`.

    Differences from nnU-Net: rotated patches are read from the whole volume, instead of a larger patch that is zero
    outside; labels are those of the nearest voxel, instead of interpolated; each patch is centred on foreground with
    probability 0.33, instead of a fixed part of the batch; channels of one field share their random values. Volumes
    must be preprocessed: resampled and normalized.

    Args:
        source: pairs of an image and its labels for :func:`feedline.open`, or a dataset of volumes.
        size: extents of a patch in voxels.
        batch_size: patches per rank.
        labels: name of the field with labels, from which foreground is drawn.
        rotation: the largest angle in degrees; nnU-Net uses 30 for isotropic patches, and 15 for others.
        mirror_axes: the axes that are mirrored, each with probability 0.5.

    Raises:
        ConfigError: as for :func:`feedline.open` and the operations.
    """
    dataset = source if isinstance(source, Dataset) else sources.open(source)
    train = dataset.random_crop(size, pad_if_needed=True, foreground=(labels, 0.33))
    train = train.random_affine(rotation, p=0.2).random_zoom((1 / 1.4, 1 / 0.7), p=0.2)
    train = train.random_gaussian_noise((0.0, 0.1), p=0.1).random_gaussian_blur((0.5, 1.0), p=0.1)
    train = train.random_brightness((0.75, 1.25), p=0.15).random_contrast((0.75, 1.25), p=0.15)
    train = train.random_low_resolution((0.5, 1.0), p=0.125)
    train = train.random_gamma((0.7, 1.5), p=0.1, invert=True, retain_stats=True)
    train = train.random_gamma((0.7, 1.5), p=0.3, retain_stats=True)
    if mirror_axes:
        train = train.random_flip(mirror_axes)
    return Preset(train, {"batch_size": batch_size, "shuffle": True})
