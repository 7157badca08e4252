# SPDX-License-Identifier: Apache-2.0
"""Hooks inside a sample that is timed in detail: decoding and transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from feedline.profiler.probe import events
from feedline.profiler.probe.recorder import Recorder, clock, cpu_clock


def _timed_only_in_detail(original: Callable[..., Any], recorder: Recorder, kind: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def timed(*arguments: Any, **options: Any) -> Any:
        local = recorder.local
        if not getattr(local, "detail", False) or getattr(local, "decoding", False):
            return original(*arguments, **options)
        begin, cpu = clock(), cpu_clock()
        local.decoding = True
        try:
            return original(*arguments, **options)
        finally:
            local.decoding = False
            ended = cpu_clock()
            used = ended - cpu
            recorder.record(kind, begin, used, 0, 0, False)
            local.details += 1
            local.decoded_wall = getattr(local, "decoded_wall", 0) + clock() - begin
            local.decoded_cpu = getattr(local, "decoded_cpu", 0) + used
            recorder.inside(ended)

    return timed


def patch_pillow_file(module: Any, recorder: Recorder) -> None:
    _patch_load(module.ImageFile, recorder)


def patch_pillow_tiff(module: Any, recorder: Recorder) -> None:
    """Hooks this class separately, because the class decodes before it calls the method shared by all file classes."""
    _patch_load(module.TiffImageFile, recorder)


def patch_pillow_webp(module: Any, recorder: Recorder) -> None:
    """Likewise."""
    _patch_load(module.WebPImageFile, recorder)


def _patch_load(images: Any, recorder: Recorder) -> None:
    if "load" in vars(images):
        images.load = _timed_only_in_detail(images.load, recorder, events.DECODE)


def patch_pillow_open(module: Any, recorder: Recorder) -> None:
    """Hooks open(), which reads the header; for a small image, this takes a fifth as long as decoding."""
    module.open = _timed_only_in_detail(module.open, recorder, events.DECODE)


def patch_native_prefix(module: Any, recorder: Recorder) -> None:
    """Hooks reading in workers, where Feedline's engine reads, decodes, and applies the first transforms in one
    call.
    """
    for name in ("read", "read_encoded"):
        setattr(module.Reader, name, _timed_only_in_detail(getattr(module.Reader, name), recorder, events.DECODE))


def patch_opencv(module: Any, recorder: Recorder) -> None:
    for name in ("imread", "imdecode"):
        if hasattr(module, name):
            setattr(module, name, _timed_only_in_detail(getattr(module, name), recorder, events.DECODE))


def patch_torchvision_io(module: Any, recorder: Recorder) -> None:
    for name in ("decode_image", "decode_jpeg", "decode_png", "read_image"):
        if hasattr(module, name):
            setattr(module, name, _timed_only_in_detail(getattr(module, name), recorder, events.DECODE))


def _around_compose(original: Callable[..., Any], recorder: Recorder, step: Any) -> Callable[..., Any]:
    """`step(compose, inputs)` runs the transforms one by one, and calls its argument around each."""

    @functools.wraps(original)
    def compose(self: Any, *inputs: Any) -> Any:
        local = recorder.local
        if not getattr(local, "detail", False) or getattr(local, "composing", False):
            return original(self, *inputs)
        local.composing = True
        wall_before = getattr(local, "decoded_wall", 0)
        cpu_before = getattr(local, "decoded_cpu", 0)
        begin, cpu = clock(), cpu_clock()
        try:
            return step(self, inputs, functools.partial(_one_transform, recorder))
        finally:
            local.composing = False
            # a lazily loaded image is decoded here
            decoded = getattr(local, "decoded_wall", 0) - wall_before
            ended = cpu_clock()
            used = ended - cpu - (getattr(local, "decoded_cpu", 0) - cpu_before)
            recorder.record(events.TRANSFORM, begin + decoded, max(used, 0), 0, 0, False)
            local.details += 1
            recorder.inside(ended)

    return compose


def _one_transform(recorder: Recorder, transform: Any, *inputs: Any) -> Any:
    kind = recorder.kind_of_transform(getattr(transform, "__name__", type(transform).__name__))
    begin, cpu = clock(), cpu_clock()
    try:
        return transform(*inputs)
    finally:
        if kind is not None:
            ended = cpu_clock()
            recorder.record(kind, begin, ended - cpu, 0, 0, False)
            recorder.local.details += 1
            recorder.inside(ended)


def patch_compose(module: Any, recorder: Recorder) -> None:
    def step(compose: Any, inputs: tuple[Any, ...], one: Any) -> Any:
        (image,) = inputs
        for transform in compose.transforms:
            image = one(transform, image)
        return image

    module.Compose.__call__ = _around_compose(module.Compose.__call__, recorder, step)


def patch_compose_v2(module: Any, recorder: Recorder) -> None:
    def step(compose: Any, inputs: tuple[Any, ...], one: Any) -> Any:
        several = len(inputs) > 1
        outputs: Any = inputs if several else inputs[0]
        for transform in compose.transforms:
            outputs = one(transform, *outputs) if several else one(transform, outputs)
        return outputs

    module.Compose.forward = _around_compose(module.Compose.forward, recorder, step)
