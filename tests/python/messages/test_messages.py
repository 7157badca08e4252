# SPDX-License-Identifier: Apache-2.0
"""Every refusal has the message in the stored table, which `python tests/python/messages` compares and writes.

A changed message is thus visible in the diff of the table. See README.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from messages import refusals
from messages.samples import Samples

ALL = refusals.all_cases()
CASES = [(subject, name) for subject, cases in ALL.items() for name in cases]
STORED = {subject: refusals.stored(subject) for subject in ALL}
TABLE = [(subject, name, refusal) for subject, table in STORED.items() for name, refusal in table.items()]

# Words that mean something in Feedline's own history only.
PRIVATE = ("behind", "beside", "nobody", "anew", "is told", "goes on", "stands")
# Text of Python's reprs of functions and objects.
REPRS = re.compile(r"\bat (0x|ADDRESS)|<[\w.]+ object|<class '(?!float'>)")
# These errors are torch's own, with its text.
OF_TORCH = ("ValueError", "AttributeError", "TypeError", "KeyError", "FileNotFoundError")
# Messages that show an array, or its shape.
OF_ARRAYS = ('feedline.ragged(np.zeros(4), lengths="two")', "feedline.open(np.zeros(3))")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    with refusals.prepared(tmp_path_factory.mktemp("messages")) as made:
        yield made


@pytest.mark.parametrize(("subject", "name"), CASES, ids=[f"{subject}: {name}" for subject, name in CASES])
def test_a_refusal_has_the_stored_message(samples: Samples, subject: str, name: str) -> None:
    for module in refusals.needs(subject):
        pytest.importorskip(module, reason=f"{module} is not installed")
    try:
        found = refusals.run(ALL[subject][name], samples)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    assert name in STORED[subject], "a new case: run python tests/python/messages --update"
    assert found == STORED[subject][name]


def test_the_table_has_no_other_messages() -> None:
    assert [(subject, name) for subject, name, _ in TABLE] == CASES
    assert {path.stem for path in refusals.TABLE.iterdir()} == STORED.keys()


@pytest.mark.parametrize("subject", STORED)
def test_messages_have_no_private_words_and_no_reprs_of_objects(subject: str) -> None:
    for name, (kind, message) in STORED[subject].items():
        for word in PRIVATE:
            assert not re.search(rf"\b{word}\b", message), (name, message)
        assert not REPRS.search(message), (name, message)
        assert message and kind, name


@pytest.mark.parametrize("subject", STORED)
def test_messages_end_without_a_full_stop(subject: str) -> None:
    for name, (kind, message) in STORED[subject].items():
        first, *_ = message.split("\n")
        words = re.sub(r" \[(dataset|shard|key|record|byte offset|stage) .*\]$", "", first)
        assert kind in OF_TORCH or not words.removesuffix("...").endswith("."), (name, message)


@pytest.mark.parametrize("subject", STORED)
def test_a_message_about_an_argument_shows_what_was_given(subject: str) -> None:
    """For cases that are an expression: a part of the last call, or its type, is in the message."""
    for name, (_, message) in STORED[subject].items():
        given = _given(name)
        if given and re.search(r"\bmust (be|have|not be)\b", message) and name not in OF_ARRAYS:
            assert any(text in message for text in given), (name, message)


def _given(name: str) -> set[str]:
    """Returns the texts of the arguments of the last call in an expression, and of their parts and types."""
    try:
        last: ast.AST = ast.parse(name, mode="eval").body
    except SyntaxError:
        return set()  # the name of a function
    while isinstance(last, ast.Attribute | ast.Subscript):
        if isinstance(last, ast.Subscript) and not isinstance(last.value, ast.Call):
            return {ast.unparse(last.slice)}
        last = last.value
    if not isinstance(last, ast.Call):
        return set()
    parts = [part for argument in (*last.args, *(one.value for one in last.keywords)) for part in ast.walk(argument)]
    texts = {ast.unparse(part) for part in parts if isinstance(part, ast.expr)}
    texts |= {
        f"{word} {type(part.value).__name__}"
        for word in ("not", "but")
        for part in parts
        if isinstance(part, ast.Constant)
    }
    texts |= {
        f"not {kind}" for kind in ("list", "tuple", "dict") if any(type(p).__name__.lower() == kind for p in parts)
    }
    texts |= {str(part.value) for part in parts if isinstance(part, ast.Constant)}
    return texts | {str(_number(part)) for part in parts}


def _number(part: ast.AST) -> object:
    """Returns the value of an expression of numbers such as `2**63`."""
    try:
        return eval(compile(ast.Expression(part), "", "eval"), {"__builtins__": {}})  # type: ignore[arg-type]
    except Exception:
        return "no number"
