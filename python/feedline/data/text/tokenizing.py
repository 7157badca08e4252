# SPDX-License-Identifier: Apache-2.0
"""The functions of :meth:`Dataset.tokenize`: for samples, in a loader's threads like those of ``map``, and for lists of
texts or conversations, which are written to files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..map.mapping import BadField, UnusableFunction
from .chat_template import ChatTemplate, Unsuitable
from .conversation import assistant_turns, messages_of, tools_of
from .libraries import Tokenizer

IDS, MASK = "input_ids", "loss_mask"


class Conversation(NamedTuple):
    """The values of a chat's fields. ``tools`` is None if there are none."""

    messages: Any
    tools: Any


class Tokens(NamedTuple):
    """Token ids, int64 of shape (tokens,), and for a conversation the loss mask, bool of the same shape."""

    ids: Any
    mask: Any = None
    images: Any = None  # int32 (images + 1, 2): heights and widths, then 0 and the number of tokens that were cut off


class TextTokens:
    """Replaces a text field with ``input_ids``."""

    describes_itself: ClassVar[bool] = True
    has_masks: ClassVar[bool] = False
    has_images: ClassVar[bool] = False
    tools: ClassVar[None] = None

    def __init__(
        self,
        tokenizer: Tokenizer,
        field: str,
        call: str,
        end_id: int | None,
        max_length: int | None,
        special: bool = True,
    ) -> None:
        self.tokenizer, self.field = tokenizer, field
        self._end_id, self._max_length, self._special = end_id, max_length, special
        self.call, self.runs = call, f"tokens by {tokenizer.library}"

    def __call__(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        field = self.field
        text = _value(sample, field, (IDS,))
        if not isinstance(text, str):
            raise BadField(field, _not_text(text))
        (made,) = self.many([text])
        if made is None:
            raise BadField(field, "the text has no tokens; leave out empty texts with filter() or on_error")
        if isinstance(made, BadField):
            raise made
        return _replaced(sample, {field: {IDS: made.ids}})

    def identity(self) -> dict[str, Any]:
        """Returns JSON values that determine the tokens of a text."""
        return {
            "field": self.field,
            "tokenizer_sha256": self.tokenizer.digest(),
            "add_special_tokens": self._special,
            "end_id": self._end_id,
            **_if_given("max_length", self._max_length),
        }

    def many(self, texts: Sequence[str]) -> list[Tokens | BadField | None]:
        """Returns the tokens of each text, None for a text without tokens, or why it is refused."""
        try:
            made: list[Any] = self.tokenizer.encode(texts) if texts else []
        except UnusableFunction:
            raise
        except Exception as error:
            # finds the texts that are refused
            made = [error] if len(texts) == 1 else [self._alone(text) for text in texts]
        return [self._made(ids) for ids in made]

    def _alone(self, text: str) -> Any:
        try:
            return self.tokenizer.encode([text])[0]
        except Exception as error:
            return error

    def _made(self, ids: Any) -> Tokens | BadField | None:
        if isinstance(ids, Exception):
            return _caused(BadField(self.field, f"{self.tokenizer.library} raised {raised(ids)}"), ids)
        if len(ids) == 0:
            return None
        try:
            return Tokens(checked(self.tokenizer, self.field, ids, self._end_id)[: self._max_length])
        except BadField as error:
            return error


class ChatTokens:
    """Replaces a field of messages with ``input_ids`` and ``loss_mask``."""

    describes_itself: ClassVar[bool] = True
    has_masks: ClassVar[bool] = True
    has_images: ClassVar[bool] = False
    image_fields: Sequence[str] = ()  # that samples with images get

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        with_tools: ChatTemplate,
        fields: tuple[str, str | None],
        call: str,
        max_length: int | None,
    ) -> None:
        self.tokenizer = tokenizer
        self._template, self._with_tools = template, with_tools
        self.field, self.tools = fields
        self._max_length = max_length
        self.call, self.runs = call, f"tokens by {tokenizer.library}, chat template by Jinja2"

    def __call__(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        messages = _value(sample, self.field, (IDS, MASK))
        tools = self.tools if self.tools in sample else None
        chat = self._tokens(Conversation(messages, None if tools is None else sample[tools]))
        made: dict[str, dict[str, Any]] = {self.field: {IDS: chat.ids, MASK: chat.mask}}
        return _replaced(sample, made | ({tools: {}} if tools else {}))

    def identity(self) -> dict[str, Any]:
        """Returns JSON values that determine the tokens and the mask of a conversation."""
        return {
            "messages": self.field,
            "tools": self.tools,
            "tokenizer_sha256": self.tokenizer.digest(),
            "chat_template": self._template.identity(),
            "chat_template_with_tools": self._with_tools.identity(),
            "max_length": self._max_length,
        }

    def many(self, conversations: Sequence[Conversation]) -> list[Tokens | BadField | None]:
        """Returns the tokens of each conversation, or why it is refused."""
        return [self._alone(one) for one in conversations]

    def _alone(self, conversation: Conversation) -> Tokens | BadField:
        try:
            return self._tokens(conversation)
        except BadField as error:
            return error

    def _tokens(self, conversation: Conversation) -> Tokens:
        at = field = self.field
        try:
            messages = messages_of(conversation.messages)
            at = self.tools or field
            tools = None if conversation.tools is None else tools_of(conversation.tools)
            at = field
            template = self._template if tools is None else self._with_tools
            turns = assistant_turns(self.tokenizer, template, messages, tools)
        except Unsuitable as error:
            raise BadField(at, str(error)) from None
        except UnusableFunction:
            raise
        except Exception as error:  # the template's, and those of values that it does not expect
            raise BadField(at, f"the chat template raised {raised(error)}") from error
        ids, mask = checked(self.tokenizer, field, turns.ids)[: self._max_length], turns.mask[: self._max_length]
        if not mask.any():
            raise BadField(
                field,
                f"the first {self._max_length:,} of {len(turns.ids):,} tokens contain no assistant tokens, so the loss "
                "mask is empty; increase max_length, or leave out the sample with on_error",
            )
        return Tokens(ids, mask)


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


def _caused(error: BadField, cause: Exception) -> BadField:
    error.__cause__ = cause
    return error


def _if_given(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}


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
