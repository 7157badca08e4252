# SPDX-License-Identifier: Apache-2.0
"""Conversations: their messages in the form that chat templates expect, and the tokens of assistant turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .chat_template import ChatTemplate, Unsuitable
from .libraries import Tokenizer

_REASONING = ("reasoning_content", "thinking", "reasoning")  # names of the same value in datasets and templates


class Turns(NamedTuple):
    """Token ids, int64 of shape (tokens,), and whether each token belongs to an assistant's turn, bool of the same
    shape.
    """

    ids: Any
    mask: Any


def messages_of(value: Any) -> list[dict[str, Any]]:
    """Returns checked messages: without missing values, and with the arguments of tool calls as objects."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        raise Unsuitable(f"messages must be a list of objects with role and content, not {_short(value)}")
    messages = [_message(number, message) for number, message in enumerate(value)]
    if not any(message["role"] == "assistant" for message in messages):
        raise Unsuitable('no message has the role "assistant", so no token would be trained')
    return messages


def tools_of(value: Any) -> list[Any] | None:
    """Returns the definitions of tools: a list, or JSON text with a list; None if there are none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise Unsuitable(f"the tools are not valid JSON: {error}") from None
    if not value:
        return None
    if not isinstance(value, list):
        raise Unsuitable(f"the tools must be a list of objects, not {_short(value)}")
    return [_without_missing(tool) for tool in value]


def assistant_turns(
    tokenizer: Tokenizer, template: ChatTemplate, messages: list[dict[str, Any]], tools: list[Any] | None
) -> Turns:
    """Renders and tokenises a conversation. Raises Unsuitable if the mask would be empty, full or ambiguous."""
    text, spans = template.render(messages, tools)
    if template.has_spans:
        turns = _of_spans(tokenizer, text, spans)
    else:
        turns = _by_prefixes(tokenizer, text, _turn_spans(template, messages, tools, text))
    if not turns.mask.any():
        raise Unsuitable("the loss mask is empty: the template renders no tokens of the assistant's messages")
    if turns.mask.all() and any(message["role"] != "assistant" for message in messages):
        raise Unsuitable("the loss mask covers every token, although not all messages are the assistant's")
    return turns


def _message(number: int, message: Any) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise Unsuitable(f"message {number} must be an object with role and content, not {_short(message)}")
    role = message.get("role")
    if not isinstance(role, str) or not role:
        hint = "; this is ShareGPT's form: convert it with map()" if "from" in message and "value" in message else ""
        raise Unsuitable(f"message {number} has no role; its keys are {', '.join(map(str, message))}{hint}")
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        raise Unsuitable(f"the content of message {number} must be text or a list of parts, not {_short(content)}")
    made = {"content": content, **_without_missing(message)}
    made = {name: made[name] for name in message if name in made} | made  # in the order of the message
    if made.get("tool_calls"):
        made["tool_calls"] = _tool_calls(number, made["tool_calls"])
    reasoning = next((made[name] for name in _REASONING if name in made), None)
    return made if reasoning is None else {"thinking": reasoning, **made, "reasoning_content": reasoning}


def _tool_calls(number: int, calls: Any) -> list[Any]:
    """Returns the calls with their arguments as objects: templates serialise arguments, so text would be quoted."""
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise Unsuitable(f"the tool_calls of message {number} must be a list of objects, not {_short(calls)}")
    return [{name: _with_object(number, one) for name, one in _with_object(number, call).items()} for call in calls]


def _with_object(number: int, call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("arguments"), str):
        return call
    try:
        given = json.loads(call["arguments"])
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise Unsuitable(
            f"message {number} calls the tool {call.get('name')!r} with arguments that are not a JSON object: "
            f"{_short(call['arguments'])}"
        )
    return {**call, "arguments": given}


def _without_missing(value: Any) -> Any:
    """Removes keys whose value is None: tables store every key for every row, and templates test for keys."""
    if isinstance(value, Mapping):
        return {name: _without_missing(one) for name, one in value.items() if one is not None}
    return [_without_missing(one) for one in value] if isinstance(value, list) else value


# ---- masks ----


def _of_spans(tokenizer: Tokenizer, text: str, spans: list[tuple[int, int]]) -> Turns:
    """Masks the tokens that overlap a span."""
    located = tokenizer.located(text)
    if located is None:
        return _by_prefixes(tokenizer, text, spans)
    begins, ends = np.array(located.begins, np.int64), np.array(located.ends, np.int64)
    mask = np.zeros(len(begins), bool)
    for begin, end in spans:
        mask |= (begins < end) & (ends > begin)
    return Turns(np.array(located.ids, np.int64), mask)


def _turn_spans(
    template: ChatTemplate, messages: list[dict[str, Any]], tools: list[Any] | None, text: str
) -> list[tuple[int, int]]:
    """Returns the characters of each assistant message, after its generation prompt, by rendering the messages before
    and up to it.
    """
    spans = []
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = template.render(messages[:number], tools, generation_prompt=True).text
        until = template.render(messages[: number + 1], tools).text
        if not (text.startswith(until) and until.startswith(before)):
            raise Unsuitable(
                f"the template renders the messages up to message {number} differently in the whole conversation, so "
                "the assistant's tokens are unknown; use a template that marks them with {% generation %}"
            )
        spans.append((len(before), len(until)))
    return spans


def _by_prefixes(tokenizer: Tokenizer, text: str, spans: list[tuple[int, int]]) -> Turns:
    """Masks the tokens between the tokens of each span's beginning and end, which must be prefixes of all tokens."""
    bounds = sorted({bound for span in spans for bound in span if 0 < bound < len(text)})
    whole, *prefixes = tokenizer.encode_rendered([text, *(text[:bound] for bound in bounds)])
    ids = np.array(whole, np.int64)
    counts = {0: 0, len(text): len(ids)}
    for bound, prefix in zip(bounds, prefixes, strict=True):
        counts[bound] = len(prefix)
        if list(prefix) != list(whole[: len(prefix)]):
            raise Unsuitable(
                f"a token crosses the boundary of an assistant's message at character {bound} of the rendered text, "
                f"{_short(text[max(0, bound - 10) : bound + 10])}; add a special token or a line break to the template"
            )
    mask = np.zeros(len(ids), bool)
    for begin, end in spans:
        mask[counts[begin] : counts[end]] = True
    return Turns(ids, mask)


def _short(value: Any) -> str:
    return f"{value!r:.80}"
