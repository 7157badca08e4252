# SPDX-License-Identifier: Apache-2.0
"""Conversations with images: placeholders, their expansion to the tokens of images, and samples with pixel values."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...errors import ConfigError, Error
from ...loader.array_pool import ArrayPool
from ..map.mapping import BadField
from ..text.chat_template import ChatTemplate, Unsuitable
from ..text.libraries import Tokenizer
from ..text.tokenizing import IDS, MASK, ChatTokens, Conversation, Tokens, _replaced, _value
from .processors import EncoderInput, Processor
from .sample_images import SampleImages, folder_of_dataset, inputs_of

PIXELS = "pixel_values"
_IN_TEXT = "<image>"


class ImageChat(NamedTuple):
    """A conversation with images: the expanded tokens, the encoder's inputs for the images whose tokens are not
    truncated, and the number of tokens that were cut off because they exceed the ``length`` of a row.
    """

    tokens: Tokens
    inputs: list[EncoderInput]
    lost: int = 0


class ImageChatTokens(ChatTokens):
    """Replaces fields of messages and images with ``input_ids``, ``loss_mask``, ``pixel_values``, and the integers that
    the model needs for each image.
    """

    describes_itself: ClassVar[bool] = True
    has_images: ClassVar[bool] = True
    gives_away: ClassVar[bool] = True  # the result of a call is not changed after it returns

    def __init__(
        self,
        where: str,
        tokenizer: Tokenizer,
        templates: tuple[ChatTemplate, ChatTemplate],
        fields: tuple[str, str | None],
        call: str,
        max_length: int | None,
        processor: Processor,
        images: SampleImages,
    ) -> None:
        super().__init__(tokenizer, *templates, fields, call, None)
        self.processor, self.images = processor, images
        self._most = max_length
        self._memory = ArrayPool()
        self.runs += f", images by {processor.name}"
        self._image_id = self._id(where, processor.image_token)
        self._around = tuple(self._id(where, token) for token in processor.around if token)
        self._before = tokenizer.token_id(processor.before) if processor.before else None

    def _id(self, where: str, token: str) -> int:
        number = self.tokenizer.token_id(token)
        if number is None:
            raise ConfigError(
                f"{where}: the tokenizer does not have the image token {token!r} of {self.processor.name}"
            )
        return number

    @property
    def image_id(self) -> int:
        """The id of the repeated image token."""
        return self._image_id

    def __call__(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        _value(sample, self.field, (IDS, MASK, *self.image_fields))
        encoded = self.images(sample)
        chat = self.chat(sample, encoded)
        values = self._memory.empty(values_shape(self.processor, chat.inputs))
        at = 0
        for number, (image, one) in enumerate(zip(encoded, chat.inputs, strict=False)):
            try:
                self.processor.write(image, one, values[at : at + one.shape[0]])
            except Error as error:
                raise BadField(self.images.fields[0], f"image {number}: {error}") from None
            at += one.shape[0]
        fields: dict[str, Any] = {IDS: chat.tokens.ids, MASK: chat.tokens.mask, PIXELS: values}
        if self.processor.facts:
            fields[self.processor.facts] = facts(self.processor, chat.inputs)
        removed: dict[str, dict[str, Any]] = {name: {} for name in (*self.images.fields, self.tools or "")}
        return _replaced(sample, removed | {self.field: fields})

    def for_dataset(self, dataset: Any) -> ImageChatTokens:
        """Returns a copy whose relative paths refer to the folder of another dataset."""
        made = copy.copy(self)
        made.images = SampleImages(self.images.fields, folder_of_dataset(dataset))
        return made

    def begin(self) -> None:
        """Called before a loader's threads first call the function."""
        self._memory.begin()

    def end(self) -> None:
        """Called when the loader closes."""
        self._memory.end()

    def identity(self) -> dict[str, Any]:
        return {
            **super().identity(),
            **self.processor.identity(),
            "max_length": self._most,
            "images": list(self.images.fields),
            "folder": None if self.images.folder is None else os.path.abspath(self.images.folder),
        }

    @property
    def image_fields(self) -> Sequence[str]:  # type: ignore[override]
        """The fields that samples get besides the tokens and the mask."""
        return (PIXELS, self.processor.facts) if self.processor.facts else (PIXELS,)

    def chat(
        self, sample: Mapping[str, Any], encoded: Sequence[Any] | None = None, length: int | None = None
    ) -> ImageChat:
        """Returns the tokens of a sample with ``images``, read from their headers.

        Args:
            encoded: the sample's images, if they have been read.
            length: tokens after which the conversation is truncated, even if no assistant tokens remain.
        """
        field = self.images.fields[0]
        inputs = inputs_of(self.processor, field, self.images(sample) if encoded is None else encoded)
        if self.processor.name == "LlavaOnevisionImageProcessor" and len(inputs) > 1:
            raise BadField(
                field, f"{self.processor.name} is only supported for one image per sample, not {len(inputs)}"
            )
        messages = _value(sample, self.field, ())
        try:
            messages = with_placeholders(messages, len(inputs), self._template.source, self.processor.image_token)
        except Unsuitable as error:
            raise BadField(self.field, str(error)) from None
        tools = sample[self.tools] if self.tools is not None and self.tools in sample else None
        short = self._tokens(Conversation(messages, tools))
        ids, mask, ends = self._expanded(short, inputs)
        count, end, whole = len(ids), len(ids), len(inputs)
        if self._most is not None and end > self._most:
            end, whole = self._cut(ids, ends, inputs, self._most)
            if not mask[:end].any():
                raise BadField(
                    self.field,
                    f"the first {end:,} of {count:,} tokens contain no assistant tokens, so the loss mask is empty; "
                    "increase max_length, or leave out the sample with on_error",
                )
            count = end
        if length is not None and end > length:
            end, whole = self._cut(ids, ends, inputs, length)
        return ImageChat(Tokens(ids[:end], mask[:end]), inputs[:whole], count - end)

    def _expanded(self, short: Tokens, inputs: Sequence[EncoderInput]) -> tuple[Any, Any, Any]:
        """Returns ids, mask, and the ends of the images' tokens."""
        places = np.flatnonzero(short.ids == self._image_id)
        if len(places) != len(inputs):
            raise BadField(
                self.field,
                f"the chat template renders {len(places)} image tokens {self.processor.image_token!r} for "
                f"{len(inputs)} images; the text of the messages must not contain this token",
            )
        lengths = np.array([one.tokens + len(self._around) for one in inputs], np.int64)
        counts = np.ones(len(short.ids), np.int64)
        counts[places] = lengths
        ids, mask = np.repeat(short.ids, counts), np.repeat(short.mask, counts)
        ends = np.cumsum(counts)[places]
        if self._around:
            ids[ends - lengths], ids[ends - 1] = self._around
        return ids, mask, ends

    def _cut(self, ids: Any, ends: Any, inputs: Sequence[EncoderInput], most: int) -> tuple[int, int]:
        """Returns the number of tokens, at most ``most``, which end before an image or after it, and of images."""
        whole = int(np.searchsorted(ends, most, "right"))
        if whole == len(inputs):
            return most, whole
        begin = int(ends[whole]) - inputs[whole].tokens - len(self._around)
        if begin and self._before is not None and ids[begin - 1] == self._before:
            begin -= 1
        return min(most, begin), whole


def values_shape(processor: Processor, inputs: Sequence[EncoderInput]) -> tuple[int, ...]:
    """Returns the shape of the values of images, which are concatenated along the first dimension."""
    rows = sum(one.shape[0] for one in inputs)
    return rows, *(inputs[0].shape[1:] if inputs else processor.row_shape())


def facts(processor: Processor, inputs: Sequence[EncoderInput]) -> Any:
    """Returns the rows of ``processor.facts``, int64 (images, columns)."""
    columns = 3 if processor.facts == "image_grid_thw" else 2
    return np.array([processor.fact_of(one) for one in inputs], np.int64).reshape(-1, columns)


# ---- placeholders ----


def with_placeholders(messages: Any, images: int, template: str, image_token: str) -> Any:
    """Returns messages in the form that the template expects.

    ``<image>`` in texts becomes a part of type image, unless the template does not mention images: it then becomes the
    image token. If the template does not test whether a content is a string, contents become lists of parts.

    Raises Unsuitable if the number of placeholders is not the number of images.
    """
    if not isinstance(messages, list | tuple):
        return messages  # reported with other faults of messages
    needs_parts, takes_strings = "image" in template, "is string" in template
    changed, count = [], 0
    for number, message in enumerate(messages):
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            held = content.count(_IN_TEXT)
            if not needs_parts:
                message = {**message, "content": content.replace(_IN_TEXT, image_token)}
            elif held or not takes_strings:
                message = {**message, "content": _parts(content)}
        else:
            held = sum(map(_is_image, content)) if isinstance(content, list) else 0
            if isinstance(content, list) and any(_type_of(part) == "video" for part in content):
                raise Unsuitable(f"message {number} has a video; only images are supported")
        if count + held > images:
            raise Unsuitable(
                f"message {number} has a placeholder for image {images}, but the sample has {_images(images)}; each "
                "placeholder needs an image"
            )
        count += held
        changed.append(message)
    if count < images:
        raise Unsuitable(
            f"the sample has {_images(images)}, but its {len(messages)} messages have {count} placeholders: image "
            f"{count} is not in message {len(messages) - 1} or an earlier one; add {_IN_TEXT} or a part of type image"
        )
    return changed


def _parts(text: str) -> list[dict[str, str]]:
    parts: list[dict[str, str]] = []
    for number, piece in enumerate(text.split(_IN_TEXT)):
        parts += [{"type": "image"}] if number else []
        parts += [{"type": "text", "text": piece}] if piece else []
    return parts or [{"type": "text", "text": ""}]


def _type_of(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _is_image(part: Any) -> bool:
    return _type_of(part) in ("image", "image_url") or (
        isinstance(part, Mapping) and _type_of(part) is None and part.get("image") is not None
    )


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"
