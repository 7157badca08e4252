# SPDX-License-Identifier: Apache-2.0
"""Tokenizers, texts that they refuse, and token files."""

from __future__ import annotations

import json
from typing import Any

from made_tokenizers import Bytes, Words

import feedline
from feedline.tokenizing import tokenize
from messages.expressions import functions
from messages.samples import Samples


def texts(s: Samples, *values: Any) -> feedline.Dataset:
    s.write("t.jsonl", "".join(json.dumps({"text": value}) + "\n" for value in values).encode())
    return feedline.open("here/t.jsonl", fields=["text"])


def _an_object_that_is_not_a_tokenizer(s: Samples) -> None:
    texts(s, "a").tokenize(3)


def _a_tokenizer_that_does_not_exist(s: Samples) -> None:
    texts(s, "a").tokenize("here/tokenizer.json")


def _a_folder_without_a_tokenizer(s: Samples) -> None:
    texts(s, "a").tokenize("here")


def _a_tokenizer_without_an_end_token(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), append_eod=True)


def _an_end_token_that_the_vocabulary_lacks(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), append_eod=True, eod="<|no|>")


def _an_end_token_outside_of_the_vocabulary(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), append_eod=True, eod=260)


def _an_end_token_that_is_not_appended(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), eod=256)


def _a_length_of_zero(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), max_length=0)


def _texts_and_messages(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), "text", messages="messages")


def _a_template_for_texts(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), chat_template="{{ messages }}")


def _an_end_token_for_messages(s: Samples) -> None:
    texts(s, "a").tokenize(Words(), messages="text", append_eod=True)


def _a_model_without_a_template(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), messages="text")


def _a_field_of_texts_that_does_not_exist(s: Samples) -> None:
    texts(s, "a").tokenize(Bytes(), "words").loader(1)


def _a_field_of_ids_that_exists(s: Samples) -> None:
    texts(s, "a").map(lambda sample: {**sample, "input_ids": 1}).tokenize(Bytes()).loader(1)


def _an_empty_text(s: Samples) -> None:
    texts(s, "", "a").tokenize(Words())[0]


def _a_text_that_the_tokenizer_refuses(s: Samples) -> None:
    texts(s, "bad").tokenize(Words())[0]


def _an_id_outside_of_the_vocabulary(s: Samples) -> None:
    texts(s, "a big one").tokenize(Words())[0]


def _bytes_instead_of_text(s: Samples) -> None:
    texts(s, "a").map(lambda sample: {"text": b"a"}).tokenize(Words())[0]


def _a_token_file_of_empty_texts(s: Samples) -> None:
    tokenize(texts(s, "", " ").source, "here/out", tokenizer=Words(), num_workers=1)


def _a_line_without_the_field(s: Samples) -> None:
    tokenize(texts(s, "a").source, "here/out", tokenizer=Words(), field="content", num_workers=1)


def _a_line_that_is_not_json(s: Samples) -> None:
    s.write("t.jsonl", b'{"text": "a"}\n{"text"}\n')
    tokenize("here/t.jsonl", "here/out", tokenizer=Words(), num_workers=1)


def _a_dataset_without_the_field(s: Samples) -> None:
    tokenize(texts(s, "a"), "here/out", tokenizer=Words(), field="content", num_workers=1)


def _a_truncated_line_file(s: Samples) -> None:
    s.write("t.jsonl.gz", bytes.fromhex("1f8b0800000000000203ab562a49ad28"))
    tokenize("here/t.jsonl.gz", "here/out", tokenizer=Words(), num_workers=1)


def _an_end_token_without_append_eod(s: Samples) -> None:
    tokenize(texts(s, "a").source, "here/out", tokenizer=Words(), eod=5)


def _token_files_with_other_arguments(s: Samples) -> None:
    source = texts(s, "a").source
    tokenize(source, "here/out", tokenizer=Words(), num_workers=1)
    tokenize(source, "here/out", tokenizer=Words(), append_eod=True, num_workers=1)


def _token_files_that_have_changed(s: Samples) -> None:
    source = texts(s, "a").source
    tokenize(source, "here/out", tokenizer=Words(), num_workers=1)
    s.write("out.bin", b"")
    tokenize(source, "here/out", tokenizer=Words(), num_workers=1)


def _token_files_of_another_program(s: Samples) -> None:
    s.write("out.bin", b"")
    tokenize(texts(s, "a").source, "here/out", tokenizer=Words(), num_workers=1)


def _token_files_in_a_bucket(s: Samples) -> None:
    tokenize(texts(s, "a").source, "s3://bucket/out", tokenizer=Words())


CASES = functions(globals())
