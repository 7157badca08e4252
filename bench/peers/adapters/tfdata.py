# SPDX-License-Identifier: Apache-2.0
"""tf.data. Variants: fused (decodes only the crop), full. Its resize has no antialiasing. Autotuning is off, because
closing an iterator would then wait for a sleeping thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # otherwise, it prints messages about missing GPUs

import tensorflow as tf
from work import MEAN, SHORTER, SIZE, STD, Work

DISTRIBUTIONS = ("tensorflow-cpu", "numpy")


def _box(shape: Any) -> Any:
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.zeros([1, 0, 4]),
        area_range=(0.08, 1.0),
        aspect_ratio_range=(3 / 4, 4 / 3),
        min_object_covered=0.0,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], size[:2]], 0)


def _train(encoded: Any, variant: str) -> Any:
    box = _box(tf.io.extract_jpeg_shape(encoded))
    if variant == "fused":
        pixels = tf.image.decode_and_crop_jpeg(encoded, box, channels=3)
    else:
        pixels = tf.image.crop_to_bounding_box(tf.image.decode_jpeg(encoded, channels=3), *tf.unstack(box))
    return tf.image.random_flip_left_right(tf.image.resize(pixels, [SIZE, SIZE]))


def _validate(encoded: Any) -> Any:
    pixels = tf.image.decode_jpeg(encoded, channels=3)
    sides = tf.cast(tf.shape(pixels)[:2], tf.float32)
    resized = tf.cast(sides * (SHORTER / tf.reduce_min(sides)), tf.int32)
    return tf.image.resize_with_crop_or_pad(tf.image.resize(pixels, resized), SIZE, SIZE)


def make(work: Work) -> Any:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    mean, std = (tf.constant([255 * value for value in values]) for values in (MEAN, STD))
    paths, labels = work.files()

    def prepared(path: Any, label: Any) -> Any:
        encoded = tf.io.read_file(path)
        pixels = _train(encoded, work.variant) if work.train else _validate(encoded)
        pixels = (pixels - mean) / std if work.floating else tf.cast(tf.round(pixels), tf.uint8)
        return tf.transpose(pixels, [2, 0, 1]), label

    options = tf.data.Options()
    options.deterministic = False
    options.autotune.enabled = False
    options.threading.private_threadpool_size = work.threads
    options.threading.max_intra_op_parallelism = 1
    data = tf.data.Dataset.from_tensor_slices((paths, labels))
    if work.train:
        data = data.shuffle(len(paths))
    data = data.map(prepared, num_parallel_calls=work.threads).batch(work.batch, drop_remainder=True)
    data = data.prefetch(2).with_options(options)

    def epoch() -> Iterator[Any]:
        for images, _labels in data:
            yield images

    return epoch
