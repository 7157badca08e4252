# SPDX-License-Identifier: Apache-2.0
"""Plugins, and formats and operations in Python."""

import shutil

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples


def _a_library_that_is_not_a_plugin(s: Samples) -> None:
    shutil.copy(feedline._engine.__file__, "here/engine.so")
    feedline.load_plugin("here/engine.so")


def _a_file_that_is_not_a_library(s: Samples) -> None:
    feedline.load_plugin(s.write("text.so", "text"))


def _samples_without_len(s: Samples) -> None:
    feedline.format("message_without_len")(lambda source: iter("ab"))
    feedline.open("any", format="message_without_len")


def _samples_that_are_not_dicts(s: Samples) -> None:
    feedline.format("message_not_dicts")(lambda source: [1, 2])
    feedline.open("any", format="message_not_dicts")[0]


def _fields_of_a_format_in_python(s: Samples) -> None:
    feedline.format("message_fields")(lambda source: {"x": [1]})
    feedline.open("any", format="message_fields", fields="x")


def _a_format_in_python_that_is_inspected(s: Samples) -> None:
    feedline.format("message_inspected")(lambda source: {"x": [1]})
    feedline.inspect("any", format="message_inspected")


def _two_functions_of_the_same_name(s: Samples) -> None:
    feedline.operation(name="message_twice")(len)
    feedline.operation(name="message_twice")(max)


def _a_name_that_is_not_text(s: Samples) -> None:
    feedline.operation(name=7)(len)  # type: ignore[call-overload]


def _a_function_in_a_chain(s: Samples) -> None:
    feedline.operation(name="message_in_chain")(len)
    feedline.chain().apply("message_in_chain")


CASES = expressions("""
    feedline.load_plugin("missing.so")
    feedline.load_plugin(7)
    feedline.load_plugin("")
    feedline.format("tar")(len)
    feedline.format("")
    feedline.format("mine", extensions=[".x"])
    feedline.format("mine", extensions="x")
    feedline.format("mine", extensions=7)
    feedline.format("mine", extensions=["parquet"])(len)
    feedline.format("mine")(7)
    feedline.operation(7)
    feedline.operation(batched=1)
    images.apply("missing")
    images.apply(7)
    images.apply("missing", bits="x")
    images.apply("missing", fields="nothing")
""") | functions(globals())
