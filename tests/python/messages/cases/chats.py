# SPDX-License-Identifier: Apache-2.0
"""Conversations, and the chat templates that render them."""

from __future__ import annotations

import json
from typing import Any

from made_tokenizers import CHATML, Bytes

import feedline
from messages.expressions import functions
from messages.samples import Samples

NEEDS = ("jinja2",)


def chat(s: Samples, *messages: Any, template: str = CHATML, **options: Any) -> None:
    s.write("c.jsonl", (json.dumps({"messages": messages}) + "\n").encode())
    rows = feedline.open("here/c.jsonl", fields=["messages"])
    rows.tokenize(Bytes(), messages="messages", chat_template=template, **options)[0]


ASKED = {"role": "user", "content": "q"}
ANSWERED = {"role": "assistant", "content": "a"}


def _a_template_with_an_error(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template="{% if %}")


def _a_template_that_does_not_exist(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template="here/template.jinja")


def _template_arguments_that_are_a_list(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template_arguments=[1])


def _a_message_without_a_role(s: Samples) -> None:
    chat(s, ASKED, {"content": "a"})


def _messages_of_sharegpt(s: Samples) -> None:
    chat(s, {"from": "human", "value": "q"})


def _a_message_that_is_text(s: Samples) -> None:
    chat(s, "q")


def _no_messages(s: Samples) -> None:
    chat(s)


def _a_content_that_is_a_number(s: Samples) -> None:
    chat(s, {"role": "assistant", "content": 3})


def _no_message_of_the_assistant(s: Samples) -> None:
    chat(s, ASKED)


def _arguments_of_a_tool_call_that_are_not_an_object(s: Samples) -> None:
    chat(s, ASKED, {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]})


def _tool_calls_that_are_text(s: Samples) -> None:
    chat(s, ASKED, {"role": "assistant", "tool_calls": "f"})


def _a_template_that_raises(s: Samples) -> None:
    chat(s, ASKED, ASKED, ANSWERED, template="{{ raise_exception('roles must alternate') }}")


def _a_template_that_changes_the_messages(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template="{{ messages.append(1) }}")


def _a_mask_that_is_empty(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template="{% generation %}{% endgeneration %}q")


def _a_mask_of_everything(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, template="{% generation %}qa{% endgeneration %}")


def _a_template_that_changes_earlier_messages(s: Samples) -> None:
    template = "{% for m in messages %}{{ m.content if loop.last or m.role == 'user' else '-' }};{% endfor %}"
    chat(s, ASKED, ANSWERED, ASKED, ANSWERED, template=template)


def _a_length_without_an_answer(s: Samples) -> None:
    chat(s, ASKED, ANSWERED, max_length=3)


def _noncharacters_in_a_message(s: Samples) -> None:
    chat(s, ASKED, {"role": "assistant", "content": "\ufdd0"})


CASES = functions(globals())
