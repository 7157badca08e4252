# SPDX-License-Identifier: Apache-2.0
"""`ds.tokenize(messages=)`: the template's text, the loss mask of assistant turns, and refused conversations."""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from made_tokenizers import CHATML, UNMARKED, Bytes, text_of, trained

import feedline

pytest.importorskip("jinja2")

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 1+1? é世界"},
    {"role": "assistant", "content": "Two — é世界!"},
    {"role": "user", "content": "<tag> & 3?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": '{"a": "é<", "b": 2}'}}],
    },
    {"role": "tool", "content": "3"},
    {"role": "assistant", "content": "It is 3."},
]
# With U+27E6 and U+27E7 around the assistant's tokens.
EXPECTED = """\
<|im_start|>user
What is 1+1? é世界<|im_end|>
<|im_start|>assistant
⟦Two — é世界!<|im_end|>⟧
<|im_start|>user
<tag> & 3?<|im_end|>
<|im_start|>assistant
⟦{"name": "add", "arguments": {"a": "é<", "b": 2}}<|im_end|>⟧
<|im_start|>tool
3<|im_end|>
<|im_start|>assistant
⟦It is 3.<|im_end|>⟧
"""


class Plain:
    """A tokenizer without offsets: a token per character, or per pair of characters in `merges`."""

    def __init__(self, merges: str = "") -> None:
        self._merges = merges

    def encode(self, text: str) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            pair = text[at : at + 2]
            size = 2 if len(pair) == 2 and pair in self._merges else 1
            ids.append(ord(text[at]) if size == 1 else 0x110000 + self._merges.index(pair))
            at += size
        return ids


def chats(folder: Path, *talks: Any, **columns: Any) -> feedline.Dataset:
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps({"messages": talk, **columns}) + "\n" for talk in talks))
    return feedline.open(path, fields=["messages", *columns])


@pytest.mark.parametrize("name", ["chat.parquet", "chat.arrow"])
def test_lists_of_structs_equal_json_lines(tmp_path: Path, name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    short = [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "Two", "thinking": None}]
    table = pa.Table.from_pylist([{"messages": TALK}, {"messages": short}])  # every message has every key
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / name)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(table, str(tmp_path / name))
    options: dict[str, Any] = {"messages": "messages", "chat_template": CHATML}
    columns = feedline.open(tmp_path / name, fields=["messages"]).tokenize(Bytes(), **options)
    lines = chats(tmp_path, TALK, short).tokenize(Bytes(), **options)
    assert marked(columns[0]) == marked(lines[0]) == EXPECTED
    assert marked(columns[1]) == marked(lines[1])


def marked(sample: Any, decode: Any = text_of) -> str:
    """The text of a sample, with marks around runs of the mask."""
    text, run, previous = "", [], False
    for token, is_own in zip(sample.input_ids.tolist(), sample.loss_mask.tolist(), strict=True):
        if is_own != previous:
            text += decode(run) + ("⟦" if is_own else "⟧")
            run, previous = [], is_own
        run.append(token)
    return text + decode(run) + ("⟧" if previous else "")


def test_generation_blocks_are_the_mask(tmp_path: Path) -> None:
    tokens = chats(tmp_path, TALK).tokenize(Bytes(), messages="messages", chat_template=CHATML)
    assert marked(tokens[0]) == EXPECTED
    assert {name: spec.dtype for name, spec in tokens.schema.items()} == {"input_ids": "int64", "loss_mask": "bool"}
    assert marked(pickle.loads(pickle.dumps(tokens))[0]) == EXPECTED


def test_a_template_without_marks_is_rendered_up_to_each_turn(tmp_path: Path) -> None:
    rows = chats(tmp_path, TALK)
    # a turn includes what the template renders after it: here the line break
    expected = EXPECTED.replace("⟧\n", "\n⟧")
    assert marked(rows.tokenize(Bytes(), messages="messages", chat_template=UNMARKED)[0]) == expected
    tokens = rows.tokenize(Plain(), messages="messages", chat_template=UNMARKED)
    assert marked(tokens[0], lambda ids: "".join(map(chr, ids))) == expected


def test_marks_work_without_offsets_and_in_macros(tmp_path: Path) -> None:
    rows = chats(tmp_path, TALK)
    tokens = rows.tokenize(Plain(), messages="messages", chat_template=CHATML)
    assert marked(tokens[0], lambda ids: "".join(map(chr, ids))) == EXPECTED
    macro = "{% macro say(m) %}{% generation %}{{ m }}{% endgeneration %}{% endmacro %}"
    template = (
        macro + "{% for m in messages %}[{{ say(m.content) if m.role == 'assistant' else m.content }}]{% endfor %}"
    )
    talk = [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]
    assert (
        marked(chats(tmp_path, talk).tokenize(Bytes(), messages="messages", chat_template=template)[0]) == "[ab][⟦cd⟧]"
    )


def test_batches_are_padded_with_false(tmp_path: Path) -> None:
    short = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    (batch,) = (
        chats(tmp_path, short, TALK)
        .tokenize(Bytes(), messages="messages", chat_template=CHATML)
        .loader(2, output="numpy")
    )
    lengths = batch.input_ids_length.tolist()
    assert batch.input_ids.shape == batch.loss_mask.shape == (2, max(lengths))
    assert batch.loss_mask_length.tolist() == lengths
    assert not batch.input_ids[0, lengths[0] :].any() and not batch.loss_mask[0, lengths[0] :].any()
    own = re.findall("⟦(.*)<|im_end|>⟧".replace("|", "[|]"), EXPECTED)
    assert batch.loss_mask.sum(1).tolist() == [len(b"b") + 1, sum(len(text.encode()) + 1 for text in own)]


def test_tools_come_from_their_field(tmp_path: Path) -> None:
    for given in (TOOLS, json.dumps(TOOLS)):
        tokens = chats(tmp_path, TALK, tools=given).tokenize(Bytes(), messages="messages", chat_template=CHATML)
        assert list(tokens.schema) == ["input_ids", "loss_mask"]
        assert marked(tokens[0]) == f"<|im_start|>system\n{json.dumps(TOOLS)}<|im_end|>\n" + EXPECTED
    other = chats(tmp_path, TALK, functions=TOOLS).tokenize(
        Bytes(), messages="messages", tools="functions", chat_template=CHATML
    )
    assert marked(other[0]).startswith("<|im_start|>system")
    unused = chats(tmp_path, TALK, tools=TOOLS).tokenize(Bytes(), messages="messages", tools=None, chat_template=CHATML)
    assert marked(unused[0]) == EXPECTED and list(unused.schema) == ["input_ids", "loss_mask", "tools"]


def test_missing_values_of_tables_are_left_out(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ m.keys() | list }}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
    )
    talk = [{"role": "assistant", "content": "x", "tool_calls": None, "name": None}]
    tokens = chats(tmp_path, talk).tokenize(Bytes(), messages="messages", chat_template=template)
    keys = sorted(eval(marked(tokens[0]).partition("⟦")[0]))
    assert keys == ["content", "role"]


def test_length_cuts_ids_and_mask(tmp_path: Path) -> None:
    rows = chats(tmp_path, TALK)
    whole = rows.tokenize(Bytes(), messages="messages", chat_template=CHATML)[0]
    first = int(whole.loss_mask.argmax())
    cut = rows.tokenize(Bytes(), messages="messages", chat_template=CHATML, max_length=first + 3)[0]
    assert cut.input_ids.tolist() == whole.input_ids[: first + 3].tolist()
    assert cut.loss_mask.tolist() == [False] * first + [True] * 3
    with pytest.raises(
        feedline.DataError, match=rf"the first {first} of {len(whole.input_ids)} tokens contain no assistant tokens"
    ):
        rows.tokenize(Bytes(), messages="messages", chat_template=CHATML, max_length=first)[0]


CONTENTS = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"


def test_an_object_has_templates_and_special_tokens(tmp_path: Path) -> None:
    """With the attributes of transformers' tokenizers."""

    class Model(Bytes):
        chat_template = {"default": "{{ bos_token }}" + CONTENTS, "tool_use": "T{{ extra }}" + CONTENTS}  # noqa: RUF012
        special_tokens_map = {"bos_token": "<|bos|>", "eos_token": "<|end|>"}  # noqa: RUF012

    talk = [{"role": "system", "content": ""}, {"role": "assistant", "content": "x"}]
    tokens = chats(tmp_path, talk).tokenize(Model(), messages="messages", template_arguments={"extra": 5})
    assert marked(tokens[0]) == "<|bos|>⟦x⟧"
    tokens = chats(tmp_path, talk, tools=TOOLS).tokenize(Model(), messages="messages", template_arguments={"extra": 5})
    assert marked(tokens[0]) == "T5⟦x⟧"


def _answer(content: Any = "x", **more: Any) -> list[Any]:
    return [{"role": "user", "content": "q"}, {"role": "assistant", "content": content, **more}]


DROPS = (  # as templates do that remove earlier reasoning
    "{% for m in messages %}{{ m.role }}:{{ m.content if loop.last or m.role == 'user' else '-' }};{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.mark.parametrize(
    ("talk", "template", "expected"),
    [
        ("hello", CHATML, "messages must be a list of objects with role and content, not 'hello'"),
        ([], CHATML, "messages must be a list of objects with role and content, not []"),
        (["x"], CHATML, "message 0 must be an object with role and content, not 'x'"),
        ([*_answer(), {"content": "y"}], CHATML, "message 2 has no role; its keys are content"),
        ([{"from": "human", "value": "y"}], CHATML, "this is ShareGPT's form: convert it with map()"),
        (_answer(3), CHATML, "the content of message 1 must be text or a list of parts, not 3"),
        ([{"role": "user", "content": "q"}], CHATML, 'no message has the role "assistant"'),
        (
            _answer(None, tool_calls=[{"function": {"name": "f", "arguments": "{"}}]),
            CHATML,
            "message 1 calls the tool 'f' with arguments that are not a JSON object: '{'",
        ),
        (_answer(None, tool_calls="f"), CHATML, "the tool_calls of message 1 must be a list of objects, not 'f'"),
        (_answer(), "{{ raise_exception('roles must alternate') }}", "the chat template raised TemplateError: roles"),
        (_answer(), "{{ messages.append(1) }}", "the chat template raised SecurityError"),
        (_answer(), "{% set n = namespace(_x=1) %}", "the chat template raised SecurityError"),
        (_answer(), "{{ messages[5].content.x }}", "the chat template raised UndefinedError"),
        (_answer(), "{% generation %}{% endgeneration %}q", "the loss mask is empty"),
        (_answer(), "{% generation %}qx{% endgeneration %}", "the loss mask covers every token"),
        (_answer("\ufdd0"), CHATML, "the text contains U+FDD0 or U+FDD1"),
        ([*_answer(), *_answer()], DROPS, "the template renders the messages up to message 1 differently"),
    ],
)
def test_a_refused_conversation_names_the_reason(tmp_path: Path, talk: Any, template: str, expected: str) -> None:
    rows = chats(tmp_path, _answer(), talk)
    tokens = rows.tokenize(Bytes(), messages="messages", chat_template=template)
    with pytest.raises(feedline.DataError) as caught:
        tokens.subset([1])[0]
    assert "field 'messages': tokenize(<made_tokenizers.Bytes>, messages='messages')" in str(caught.value)
    assert expected in str(caught.value)
    assert caught.value.record == 1 and caught.value.dataset == str(tmp_path / "chat.jsonl")
    if "TemplateError" in expected:
        assert type(caught.value.__cause__).__name__ == "TemplateError"


def test_a_token_across_a_boundary_is_refused(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ m.role }}>{{ m.content }};{% endfor %}{{ 'assistant>' if add_generation_prompt }}"
    )
    rows = chats(tmp_path, _answer("x"))
    made = rows.tokenize(Plain(), messages="messages", chat_template=template)[0]
    assert marked(made, lambda ids: "".join(map(chr, ids))) == "user>q;assistant>⟦x;⟧"
    with pytest.raises(feedline.DataError, match=r"a token crosses the boundary .* at character 17 .*'assistant>x;'"):
        rows.tokenize(Plain(">x"), messages="messages", chat_template=template)[0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"messages": "messages"}, "<made_tokenizers.Bytes> has no chat template; pass chat_template"),
        ({"messages": "messages", "chat_template": "{% if %}"}, "the chat template has an error in line 1"),
        ({"messages": "messages", "chat_template": "nowhere.jinja"}, "is neither template text nor a readable file"),
        ({"messages": "messages", "field": "text"}, "pass field or messages, not both"),
        ({"messages": 3, "chat_template": CHATML}, "messages must be a field's name, not 3"),
        ({"messages": "messages", "append_eod": True}, "append_eod is only for texts"),
        ({"chat_template": CHATML}, "chat_template and template_arguments require messages"),
        (
            {"messages": "messages", "chat_template": CHATML, "template_arguments": 3},
            "template_arguments must be a dict",
        ),
    ],
)
def test_wrong_arguments(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(feedline.ConfigError, match="tokenize: ") as caught:
        chats(tmp_path, TALK).tokenize(Bytes(), **options)
    assert expected in str(caught.value)


def test_jinja_is_named_if_it_is_missing_or_has_known_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = chats(tmp_path, TALK)
    import jinja2

    monkeypatch.setattr(jinja2, "__version__", "3.1.5")
    with pytest.raises(feedline.ConfigError, match=r'Jinja2 3\.1\.5 has known escapes .*"jinja2>=3\.1\.6"'):
        rows.tokenize(Bytes(), messages="messages", chat_template=CHATML)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(feedline.ConfigError, match=r'need Jinja2: pip install "feedline\[tokenize\]"'):
        rows.tokenize(Bytes(), messages="messages", chat_template=CHATML)


# ---- the libraries themselves ----


def test_a_folder_of_a_trained_model(tmp_path: Path) -> None:
    bpe = trained(tmp_path / "model")
    rows = chats(tmp_path, TALK)
    in_config = rows.tokenize(tmp_path / "model", messages="messages")[0]
    text = bpe.decode(in_config.input_ids.tolist(), skip_special_tokens=False)
    assert text == EXPECTED.replace("⟦", "").replace("⟧", "")
    own = [bpe.decode([token], skip_special_tokens=False) for token in in_config.input_ids[in_config.loss_mask][-3:]]
    assert own[-1] == "<|im_end|>"
    # a template file comes before the config's
    (tmp_path / "model" / "chat_template.jinja").write_text(UNMARKED)
    in_file = rows.tokenize(tmp_path / "model", messages="messages")[0]
    assert (in_file.input_ids == in_config.input_ids).all()
    assert in_file.loss_mask.sum() == in_config.loss_mask.sum() + 3  # a line break after each turn


@pytest.mark.parametrize("tools", [None, TOOLS])
def test_the_same_as_transformers(tmp_path: Path, tools: Any) -> None:
    transformers = pytest.importorskip("transformers")
    trained(tmp_path / "model")
    own = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path / "model"))
    talk = copy.deepcopy(TALK)
    call = talk[3]["tool_calls"][0]["function"]
    call["arguments"] = json.loads(call["arguments"])
    expected = own.apply_chat_template(
        talk, tools=tools, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    columns = {} if tools is None else {"tools": tools}
    for given in (tmp_path / "model", own):
        made = chats(tmp_path, TALK, **columns).tokenize(given, messages="messages")[0]
        assert made.input_ids.tolist() == expected["input_ids"]
        assert made.loss_mask.astype(int).tolist() == expected["assistant_masks"]
