# SPDX-License-Identifier: Apache-2.0
"""The functions of :meth:`Dataset.tokenize`, which run in a loader's threads like those of ``map``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..map.mapping import BadField, UnusableFunction
from .chat_template import ChatTemplate, Unsuitable
from .conversation import assistant_turns, messages_of, tools_of
from .libraries import Tokenizer

IDS, MASK = "input_ids", "loss_mask"


class TextTokens:
    """Replaces a text field with ``input_ids``."""

    describes_itself: ClassVar[bool] = True

    def __init__(self, tokenizer: Tokenizer, field: str, call: str, end_id: int | None, max_length: int | None) -> None:
        self._tokenizer, self._field = tokenizer, field
        self._end_id, self._max_length = end_id, max_length
        self.call, self.runs = call, f"tokens by {tokenizer.library}"

    def __call__(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        field = self._field
        text = _value(sample, field, (IDS,))
        if not isinstance(text, str):
            raise BadField(field, _not_text(text))
        ids = encoded(self._tokenizer, field, [text], self._end_id)[0]
        return _replaced(sample, {field: {IDS: ids[: self._max_length]}})


class ChatTokens:
    """Replaces a field of messages with ``input_ids`` and ``loss_mask``."""

    describes_itself: ClassVar[bool] = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        with_tools: ChatTemplate,
        fields: tuple[str, str | None],
        call: str,
        max_length: int | None,
    ) -> None:
        self._tokenizer, self._template, self._with_tools = tokenizer, template, with_tools
        self._field, self._tools = fields
        self._max_length = max_length
        self.call, self.runs = call, f"tokens by {tokenizer.library}, chat template by Jinja2"

    def __call__(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        field = self._field
        value = _value(sample, field, (IDS, MASK))
        tools_field = self._tools if self._tools in sample else None
        at = field
        try:
            messages = messages_of(value)
            at = tools_field or field
            tools = None if tools_field is None else tools_of(sample[tools_field])
            at = field
            template = self._template if tools is None else self._with_tools
            turns = assistant_turns(self._tokenizer, template, messages, tools)
        except Unsuitable as error:
            raise BadField(at, str(error)) from None
        except UnusableFunction:
            raise
        except Exception as error:  # the template's, and those of values that it does not expect
            raise BadField(at, f"the chat template raised {raised(error)}") from error
        ids, mask = checked(self._tokenizer, field, turns.ids)[: self._max_length], turns.mask[: self._max_length]
        if not mask.any():
            raise BadField(
                field,
                f"the first {self._max_length:,} of {len(turns.ids):,} tokens contain no assistant tokens, so the loss "
                "mask is empty; increase max_length, or leave out the sample with on_error",
            )
        made: dict[str, dict[str, Any]] = {field: {IDS: ids, MASK: mask}}
        return _replaced(sample, made | ({tools_field: {}} if tools_field else {}))


def encoded(tokenizer: Tokenizer, field: str, texts: Sequence[str], end_id: int | None) -> list[Any]:
    """Returns the ids of each text as int64 arrays. Raises BadField for a text that the tokenizer refuses, that has no
    tokens, or whose ids are invalid.
    """
    try:
        made = tokenizer.encode(texts)
    except UnusableFunction:
        raise
    except Exception as error:
        raise BadField(field, f"{tokenizer.library} raised {raised(error)}") from error
    return [checked(tokenizer, field, ids, end_id) for ids in made]


def checked(tokenizer: Tokenizer, field: str, ids: Any, end_id: int | None = None) -> Any:
    """Returns ids as an int64 array, followed by ``end_id``. Raises BadField if there are none, or if one is not in the
    vocabulary.
    """
    if len(ids) == 0:
        raise BadField(field, "the text has no tokens; leave out empty texts with filter() or on_error")
    array = np.array(ids, np.int64) if end_id is None else np.array([*ids, end_id], np.int64)
    lowest, highest = int(array.min()), int(array.max())
    if lowest < 0 or (tokenizer.size is not None and highest >= tokenizer.size):
        size = "" if tokenizer.size is None else f" and less than {tokenizer.size:,}, the vocabulary's size"
        raise BadField(
            field,
            f"{tokenizer.library} returned the token id {lowest if lowest < 0 else highest}; ids must be at least 0"
            f"{size}",
        )
    return array


def raised(error: Exception) -> str:
    """Returns the type and the text of another library's error, without a full stop."""
    return f"{type(error).__name__}: {error}".rstrip(".")


def _value(sample: Mapping[str, Any], field: str, made: tuple[str, ...]) -> Any:
    if field not in sample:
        raise UnusableFunction(f"field '{field}' does not exist; the fields are {', '.join(sample)}")
    for name in made:
        if name in sample and name != field:
            raise UnusableFunction(f"the dataset already has a field '{name}'; remove it with map() first")
    return sample[field]


def _not_text(value: Any) -> str:
    if value is None:
        return "the text is missing"
    hint = "; open it as text, with ':text' after the field's name" if isinstance(value, bytes) else ""
    return f"the value is not text but {type(value).__name__}{hint}"


def _replaced(sample: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the sample with new fields in the places of those that they replace."""
    fields: dict[str, Any] = {}
    for name, value in sample.items():
        fields |= made.get(name, {name: value})
    return fields
