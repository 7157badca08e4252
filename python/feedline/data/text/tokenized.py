# SPDX-License-Identifier: Apache-2.0
"""The method :meth:`Dataset.tokenize`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from ...errors import ConfigError
from .. import arguments

_WHERE = "tokenize"


class Tokenized:
    """The methods of :class:`Dataset` that turn text into tokens."""

    def tokenize(
        self,
        tokenizer: Any,
        field: str | None = None,
        *,
        messages: str | None = None,
        tools: str | None = "tools",
        chat_template: str | os.PathLike[str] | None = None,
        template_arguments: Mapping[str, Any] | None = None,
        max_length: int | None = None,
        append_eod: bool = False,
        eod: str | int | None = None,
        add_special_tokens: bool = True,
        processes: int = 0,
    ) -> Self:
        """Turns text or conversations into token ids while loading.

        The text field is replaced by ``input_ids``, int64 of shape (tokens,). Batches are padded with zeros to (rows,
        longest), followed by ``input_ids_length``; ``collate("list", fields="input_ids")`` keeps the
        rows' lengths. Other fields do
        not change.

        Conversations (``messages=``) also get ``loss_mask``, bool of shape (tokens,), which is True for the tokens of
        assistant messages; padding is False. The chat template renders the conversation, and no further special tokens
        are added. If the template has ``{% generation %}`` blocks, tokens that overlap one are True. Otherwise, a
        message's tokens are those after its generation prompt up to the message's end, which are found by rendering
        the messages before it; both must be prefixes of the whole conversation's tokens. A mask that is empty, or that
        covers other roles' messages, raises an error.

        Threads of the loader call the tokenizer, each with a copy; ``tokenizers``, ``tiktoken`` and ``sentencepiece``
        release the GIL. The passed object, its padding and its truncation do not change. A forked process raises an
        error.

        Args:
            tokenizer: path of a ``tokenizer.json``, of a sentencepiece model (``.model``), or of a model's folder; or
                an object of tokenizers, tiktoken, sentencepiece or transformers, or one with ``encode(text)``.
            field: field with the text, by default ``"text"``.
            messages: field with a conversation instead of a text: JSON with a list of objects that have ``role`` and
                ``content``, and optionally ``tool_calls``, whose arguments may be objects or JSON text.
            tools: field with the definitions of a conversation's tools, if the dataset has it: a list, or JSON text
                with a list.
            chat_template: template text, or a path, instead of the template of the model's folder or of the object.
            template_arguments: variables of the template, such as ``{"enable_thinking": False}``.
            max_length: maximum number of tokens; later tokens are cut off, with their mask. A conversation in which no
                assistant tokens remain raises an error.
            append_eod: appends the end-of-document token to a text, before truncation.
            eod: this token, or its id; by default the tokenizer's end-of-sequence token.
            add_special_tokens: whether tokenizers and transformers add their special tokens to a text, such as BOS.
            processes: as for :meth:`map`, for tokenizers and templates that hold the GIL.

        Raises:
            ConfigError: the tokenizer or the template does not exist or cannot be loaded, a required package is
                missing, or an argument is wrong. ``loader()`` and the first sample raise this error if the field does
                not exist, or if the dataset already has a field ``input_ids`` or ``loss_mask``.
            DataError: a text has no tokens, a message has no role, the template raises an exception, or the mask is
                empty; raised when the sample is read, subject to ``on_error``.
        """
        from . import model_files  # imports modules that only tokens need
        from .tokenizing import IDS, MASK, ChatTokens, TextTokens

        if field is not None and messages is not None:
            raise ConfigError(f"{_WHERE}: pass field or messages, not both")
        special = arguments.flag(_WHERE, "add_special_tokens", add_special_tokens)
        length = None if max_length is None else arguments.integer(_WHERE, "max_length", max_length, low=1)
        wants_end = arguments.flag(_WHERE, "append_eod", append_eod)
        if eod is not None and not wants_end:
            raise ConfigError(f"{_WHERE}: eod requires append_eod=True")
        given: dict[str, Any] = {"max_length": max_length, "append_eod": append_eod or None, "eod": eod}
        model = model_files.load(_WHERE, tokenizer, special)
        if messages is None:
            if chat_template is not None or template_arguments is not None:
                raise ConfigError(f"{_WHERE}: chat_template and template_arguments require messages")
            name = _field_name("field", "text" if field is None else field)
            end = model_files.end_id(_WHERE, model, eod) if wants_end else None
            call = _call(model.shown, field=field, **given)
            return _mapped(self, TextTokens(model.tokenizer, name, call, end, length), processes, [IDS])
        if wants_end:
            raise ConfigError(f"{_WHERE}: append_eod is only for texts; a chat template ends its messages itself")
        call = _call(model.shown, messages=messages, **given)
        template, with_tools = _templates(model, chat_template, template_arguments)
        names = _field_name("messages", messages), None if tools is None else _field_name("tools", tools)
        function = ChatTokens(model.tokenizer, template, with_tools, names, call, length)
        return _mapped(self, function, processes, [IDS, MASK])


def _mapped(dataset: Any, function: Any, processes: int, fields: list[str]) -> Any:
    return dataset.map(function, processes=processes).collate("pad", fields=fields)


def _templates(model: Any, given: Any, variables: Any) -> tuple[Any, Any]:
    """Returns the templates for conversations without and with tools."""
    from .chat_template import ChatTemplate

    if variables is not None and not (
        isinstance(variables, Mapping) and all(isinstance(one, str) for one in variables)
    ):
        raise ConfigError(f"{_WHERE}: template_arguments must be a dict of values by name, not {variables!r:.200}")
    sources = dict(model.templates)
    if given is not None:
        sources = {"default": _template_text(given)}
    default = sources.get("default")
    if default is None:
        raise ConfigError(
            f"{_WHERE}: {model.shown} has no chat template; pass chat_template, or the folder of a chat model, with "
            "chat_template.jinja or tokenizer_config.json"
        )
    values = {**model.special_tokens, **(variables or {})}
    template = ChatTemplate(_WHERE, default, values)
    with_tools = sources.get("tool_use")
    return template, template if with_tools is None else ChatTemplate(_WHERE, with_tools, values)


def _template_text(given: Any) -> str:
    if isinstance(given, str) and ("{" in given or "\n" in given):
        return given
    path = arguments.path_text(_WHERE, "chat_template", given)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{_WHERE}: chat_template {path!r} is neither template text nor a readable file: {error}"
        ) from None


def _field_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{_WHERE}: {name} must be a field's name, not {value!r}")
    return value


def _call(shown: str, **options: Any) -> str:
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"tokenize({shown if shown.startswith('<') else repr(shown)}{given})"
