# SPDX-License-Identifier: Apache-2.0
"""Checks the arguments that describe a tokenization, and creates its function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import ConfigError
from .. import arguments
from . import model_files
from .chat_template import ChatTemplate
from .tokenizing import ChatTokens, TextTokens

DEFAULT_FIELD = "text"


def token_function(
    where: str,
    tokenizer: Any,
    field: str | None,
    *,
    messages: str | None,
    tools: str | None,
    chat_template: Any,
    template_arguments: Any,
    max_length: int | None,
    append_eod: bool,
    eod: str | int | None,
    add_special_tokens: bool,
    images: Any = None,
    folder: str | None = None,
) -> TextTokens | ChatTokens:
    """Returns the function with these arguments of :meth:`Dataset.tokenize`. Relative paths of images refer to
    ``folder``, and are refused if it is None. Raises ConfigError for wrong ones.
    """
    if field is not None and messages is not None:
        raise ConfigError(f"{where}: pass field or messages, not both")
    special = arguments.flag(where, "add_special_tokens", add_special_tokens)
    length = None if max_length is None else arguments.integer(where, "max_length", max_length, low=1)
    wants_end = arguments.flag(where, "append_eod", append_eod)
    if eod is not None and not wants_end:
        raise ConfigError(f"{where}: eod requires append_eod=True (--append-eod)")
    if images is not None and messages is None:
        raise ConfigError(f"{where}: images requires messages")
    given: dict[str, Any] = {"max_length": max_length, "append_eod": append_eod or None, "eod": eod}
    model = model_files.load(where, tokenizer, special)
    if messages is None:
        if chat_template is not None or template_arguments is not None:
            raise ConfigError(f"{where}: chat_template and template_arguments require messages")
        name = _field_name(where, "field", DEFAULT_FIELD if field is None else field)
        end = model_files.end_id(where, model, eod) if wants_end else None
        return TextTokens(model.tokenizer, name, _call(model.shown, field=field, **given), end, length, special)
    if wants_end:
        raise ConfigError(f"{where}: append_eod is only for texts; a chat template ends its messages itself")
    template, with_tools = _templates(where, model, chat_template, template_arguments)
    names = _field_name(where, "messages", messages), None if tools is None else _field_name(where, "tools", tools)
    call = _call(model.shown, messages=messages, images=images, **given)
    if images is not None:
        from ..vision import chats, processors, sample_images

        if model.folder is None:
            raise ConfigError(
                f"{where}: images needs the model's folder as tokenizer, with tokenizer.json and the configuration of "
                f"the image processor, not {model.shown}"
            )
        read = sample_images.SampleImages(_field_names(where, "images", images), folder)
        processor = processors.read(where, model.folder, model.special_tokens)
        return chats.ImageChatTokens(
            where, model.tokenizer, (template, with_tools), names, call, length, processor, read
        )
    return ChatTokens(model.tokenizer, template, with_tools, names, call, length)


def _templates(where: str, model: model_files.Model, given: Any, variables: Any) -> tuple[ChatTemplate, ChatTemplate]:
    """Returns the templates for conversations without and with tools."""
    if variables is not None and not (
        isinstance(variables, Mapping) and all(isinstance(one, str) for one in variables)
    ):
        raise ConfigError(f"{where}: template_arguments must be a dict of values by name, not {variables!r:.200}")
    sources = dict(model.templates)
    if given is not None:
        sources = {"default": _template_text(where, given)}
    default = sources.get("default")
    if default is None:
        raise ConfigError(
            f"{where}: {model.shown} has no chat template; pass chat_template, or the folder of a chat model, with "
            "chat_template.jinja or tokenizer_config.json"
        )
    values = {**model.special_tokens, **(variables or {})}
    template = ChatTemplate(where, default, values)
    with_tools = sources.get("tool_use")
    return template, template if with_tools is None else ChatTemplate(where, with_tools, values)


def _template_text(where: str, given: Any) -> str:
    if isinstance(given, str) and ("{" in given or "\n" in given):
        return given
    path = arguments.path_text(where, "chat_template", given)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{where}: chat_template {path!r} is neither template text nor a readable file: {error}"
        ) from None


def _field_name(where: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: {name} must be a field's name, not {value!r}")
    return value


def _field_names(where: str, name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and value:
        return tuple(_field_name(where, name, one) for one in value)
    return (_field_name(where, name, value),)


def _call(shown: str, **options: Any) -> str:
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    return f"tokenize({shown if shown.startswith('<') else repr(shown)}{given})"
