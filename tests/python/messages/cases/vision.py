# SPDX-License-Identifier: Apache-2.0
"""Conversations with images, the processors of models, and packs of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import made_vision_models as made

import feedline
from messages.expressions import functions
from messages.samples import Samples

NEEDS = ("jinja2", "tokenizers")


def chats(
    s: Samples, content: Any = "<image>q", given: Any = ("a.jpg",), config: Any = None, **options: Any
) -> feedline.Dataset:
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "a"}]
    s.write("c.jsonl", (json.dumps({"messages": messages, "images": given}) + "\n").encode())
    s.write("a.jpg", s.jpeg)
    s.patch.setenv("XDG_CACHE_HOME", str(Path("here/cache").resolve()))
    folder = made.model_folder(Path("here/model"), {**made.QWEN2, **(config or {})})
    rows = feedline.open("here/c.jsonl", fields=["messages", "images"])
    return rows.tokenize(folder, **{"messages": "messages", "images": "images", **options})


def _images_without_messages(s: Samples) -> None:
    chats(s, messages=None)


def _images_that_are_a_number(s: Samples) -> None:
    chats(s, images=3)


def _a_processor_that_is_not_supported(s: Samples) -> None:
    chats(s, config={"image_processor_type": "FuyuImageProcessor"})


def _a_filter_that_is_not_supported(s: Samples) -> None:
    chats(s, config={"resample": 1})


def _a_field_that_does_not_exist(s: Samples) -> None:
    chats(s, images="photos")[0]


def _more_placeholders_than_images(s: Samples) -> None:
    chats(s, "<image><image>q")[0]


def _more_images_than_placeholders(s: Samples) -> None:
    chats(s, "q")[0]


def _a_video(s: Samples) -> None:
    chats(s, [{"type": "video"}])[0]


def _the_image_token_in_a_text(s: Samples) -> None:
    chats(s, "<image><|image_pad|>")[0]


def _an_image_that_is_a_number(s: Samples) -> None:
    chats(s, given=[3])[0]


def _an_image_on_the_network(s: Samples) -> None:
    chats(s, given=["https://example.com/a.jpg"])[0]


def _an_image_that_does_not_exist(s: Samples) -> None:
    chats(s, given=["b.jpg"])[0]


def _an_image_that_is_text(s: Samples) -> None:
    chats(s, given=["c.jsonl"])[0]


def _an_image_that_is_too_narrow(s: Samples) -> None:
    data = chats(s)
    s.write("a.jpg", made.picture(300, 1))
    data[0]


def _truncation_before_the_answer(s: Samples) -> None:
    chats(s, max_length=8)[0]


def _images_that_would_be_split(s: Samples) -> None:
    chats(s).pack_sequences(64)


def _images_that_would_be_concatenated(s: Samples) -> None:
    chats(s).pack_sequences(64, "concat", "drop")


def _a_subset_after_tokenize(s: Samples) -> None:
    chats(s).subset([0]).pack_sequences(64, long="drop")


def _a_refused_sample(s: Samples) -> None:
    chats(s, "q").pack_sequences(64, long="drop")


def _an_image_that_was_removed(s: Samples) -> None:
    packed = chats(s).pack_sequences(64, long="drop")
    Path("here/a.jpg").unlink()
    next(iter(packed.loader(1, output="numpy")))


CASES = functions(globals())
