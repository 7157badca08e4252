# SPDX-License-Identifier: Apache-2.0
"""`ds.tokenize` of texts: the tokenizer's ids in batches, copies per thread, and errors that name the sample."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tokenizers import BOS, END, Bytes, Words, trained

import feedline

TEXTS = ["the quick brown fox", "é世界", "it is", "x", "what it is, it is: " * 40, " spaces  \n and lines\n"]


def written(path: Path, rows: list[dict[str, Any]]) -> feedline.Dataset:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return feedline.open(path, fields=list(rows[0]))


@pytest.fixture
def texts(tmp_path: Path) -> feedline.Dataset:
    return written(tmp_path / "t.jsonl", [{"text": text, "n": n} for n, text in enumerate(TEXTS)])


def test_the_text_becomes_ids_and_other_fields_stay(texts: feedline.Dataset) -> None:
    tokens = texts.tokenize(Bytes())
    assert tokens.schema["input_ids"].dtype == "int64" and list(tokens.schema) == ["input_ids", "n"]
    for sample, text in zip(tokens, TEXTS, strict=True):
        assert sample.input_ids.tolist() == [BOS, *text.encode()]
    (batch,) = tokens.loader(len(TEXTS), output="numpy")
    longest = 1 + max(len(text.encode()) for text in TEXTS)
    assert batch.input_ids.shape == (len(TEXTS), longest) and batch.n.tolist() == list(range(len(TEXTS)))
    for row, length, text in zip(batch.input_ids, batch.input_ids_length, TEXTS, strict=True):
        assert row[:length].tolist() == [BOS, *text.encode()] and not row[length:].any()


def test_threads_have_copies_and_the_object_stays_as_it_was(tmp_path: Path) -> None:
    given = Bytes()
    given.padding, given.truncation = 50, 4
    many = written(tmp_path / "m.jsonl", [{"text": f"{n} " * 200} for n in range(200)]).tokenize(given)
    ids = [
        row
        for batch in many.collate("list", fields="input_ids").loader(8, num_workers=4, output="numpy")
        for row in batch.input_ids
    ]
    assert [row.tolist() for row in ids] == [[BOS, *(f"{n} " * 200).encode()] for n in range(200)]
    assert (given.padding, given.truncation, given.calls) == (50, 4, 0)


def test_special_tokens_end_and_length(texts: feedline.Dataset) -> None:
    plain = texts.tokenize(Bytes(), add_special_tokens=False)
    assert plain[2].input_ids.tolist() == list(b"it is")
    # the id of <|end|> by name, by number and as text of a number, as the command line passes it
    for eod in ("<|end|>", END, str(END)):
        assert texts.tokenize(Bytes(), append_eod=True, eod=eod)[2].input_ids.tolist() == [BOS, *b"it is", END]
    assert texts.tokenize(Bytes(), append_eod=True, eod=END, max_length=6)[2].input_ids.tolist() == [BOS, *b"it is"]
    assert texts.tokenize(Words(), append_eod=True)[2].input_ids.tolist() == [2, 2, 999]
    with pytest.raises(feedline.ConfigError, match="names no end-of-document token; pass one as eod"):
        texts.tokenize(Bytes(), append_eod=True)
    for wrong in ("<|no|>", -1, 260, True, 1.5):
        with pytest.raises(feedline.ConfigError, match=r"eod .*<made_tokenizers.Bytes>"):
            texts.tokenize(Bytes(), append_eod=True, eod=wrong)


def test_a_pickle_gives_the_same_ids(texts: feedline.Dataset) -> None:
    tokens = texts.tokenize(Bytes(), max_length=9)
    expected = [sample.input_ids.tolist() for sample in tokens]
    assert [sample.input_ids.tolist() for sample in pickle.loads(pickle.dumps(tokens))] == expected


def test_processes_give_the_same_ids(texts: feedline.Dataset) -> None:
    expected = [sample.input_ids.tolist() for sample in texts.tokenize(Bytes(), max_length=9)]
    elsewhere = texts.tokenize(Bytes(), max_length=9, processes=1).collate("list", fields="input_ids")
    (batch,) = elsewhere.loader(len(TEXTS), output="numpy")
    assert [row.tolist() for row in batch.input_ids] == expected


def _in_a_child(tokens: Any, answers: Any) -> None:
    try:
        answers.put(repr(tokens({"text": "x"})))
    except feedline.ConfigError as error:
        answers.put(str(error))


def test_a_forked_child_refuses() -> None:
    """The engine itself refuses most uses in a forked child; this is the function that a loader would call."""
    from feedline.data.text.libraries import of_object
    from feedline.data.text.tokenizing import TextTokens

    tokens = TextTokens(of_object("tokenize", Bytes(), False), "text", "tokenize()", None, None)
    assert tokens({"text": "x"})["input_ids"].tolist() == [ord("x")]
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_in_a_child, args=(tokens, answers))
    child.start()
    answer = answers.get()
    child.join()
    assert "a tokenizer does not work in a forked process" in answer and 'multiprocessing_context="spawn"' in answer


@pytest.mark.parametrize(
    ("text", "tokenizer", "expected"),
    [
        ("", Words(), "the text has no tokens"),
        ("so bad", Words(), "Words raised KeyError: 'bad'"),
        ("a big one", Words(), "Words returned the token id 5000; ids must be at least 0 and less than 1,000"),
        (7, Words(), "the value is not text but int"),
        (b"x", Words(), "the value is not text but bytes; open it as text, with ':text' after the field's name"),
        ("\ud800", Bytes(), "tokenizers raised UnicodeEncodeError"),
    ],
)
def test_a_bad_text_names_dataset_sample_and_field(tmp_path: Path, text: Any, tokenizer: Any, expected: str) -> None:
    path = tmp_path / "b.jsonl"
    rows = written(path, [{"text": "fine"}, {"text": "x"}])
    rows = rows.map(lambda sample: {"text": text if sample["text"] == "x" else sample["text"]})
    tokens = rows.tokenize(tokenizer)
    with pytest.raises(feedline.DataError) as caught:
        tokens[1]
    assert f"field 'text': tokenize(<made_tokenizers.{type(tokenizer).__name__}>): {expected}" in str(caught.value)
    assert caught.value.dataset == str(path) and caught.value.record == 1 and caught.value.stage == "map"
    if expected.startswith("Words raised"):
        assert isinstance(caught.value.__cause__, KeyError)


def test_bad_samples_are_skipped_by_on_error(tmp_path: Path) -> None:
    rows = written(tmp_path / "s.jsonl", [{"text": text} for text in ("a b", "bad", "", "c")])
    loader = rows.tokenize(Words()).loader(2, on_error="skip", output="numpy")
    assert [batch.input_ids.tolist() for batch in loader] == [[[1, 1], [1, 0]]]
    assert [bad.record for bad in loader.errors] == [1, 2]


def test_fields_that_do_not_exist_or_already_do(texts: feedline.Dataset) -> None:
    with pytest.raises(feedline.ConfigError, match="field 'words' does not exist; the fields are text, n"):
        texts.tokenize(Words(), "words").loader(2)
    with pytest.raises(feedline.ConfigError, match="the dataset already has a field 'input_ids'"):
        texts.map(lambda sample: {**sample, "input_ids": 1}).tokenize(Words())[0]


def test_the_operation_is_shown_as_a_call(texts: feedline.Dataset) -> None:
    tokens = texts.tokenize(Words(), max_length=7)
    assert tokens.operations[0] == "tokenize(<made_tokenizers.Words>, max_length=7)"
    assert "tokens by Words, in the loader's threads" in tokens.explain()


@pytest.mark.parametrize("given", [None, 3, len, object(), "", b"x", Words])
def test_an_object_that_is_no_tokenizer(texts: feedline.Dataset, given: Any) -> None:
    with pytest.raises(feedline.ConfigError, match="tokenizer must be a path"):
        texts.tokenize(given)


def test_files_that_are_not_tokenizers(
    texts: feedline.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(feedline.ConfigError, match=r"nowhere' does not exist; pass a tokenizer\.json"):
        texts.tokenize(tmp_path / "nowhere")
    with pytest.raises(feedline.ConfigError, match=r"has neither tokenizer\.json nor tokenizer\.model"):
        texts.tokenize(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(feedline.ConfigError, match=r'needs tokenizers: pip install "feedline\[tokenize\]"'):
        texts.tokenize(tmp_path)
    (tmp_path / "x.model").write_text("x")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(feedline.ConfigError, match="needs sentencepiece: pip install sentencepiece"):
        texts.tokenize(tmp_path / "x.model")


# ---- the libraries themselves ----


def test_a_file_a_folder_and_an_object_of_tokenizers(texts: feedline.Dataset, tmp_path: Path) -> None:
    bpe = trained(tmp_path / "model")
    expected = [bpe.encode(text).ids for text in TEXTS]
    bpe.enable_truncation(2)
    bpe.enable_padding(length=300)
    for given in (bpe, tmp_path / "model", str(tmp_path / "model" / "tokenizer.json")):
        (batch,) = (
            texts.tokenize(given).collate("list", fields="input_ids").loader(len(TEXTS), num_workers=3, output="numpy")
        )
        assert [row.tolist() for row in batch.input_ids] == expected
    assert bpe.truncation["max_length"] == 2 and bpe.padding["length"] == 300
    # the folder's config names the end
    assert texts.tokenize(tmp_path / "model", append_eod=True)[2].input_ids.tolist() == [*expected[2], 0]
    (tmp_path / "damaged.json").write_text("{")
    with pytest.raises(feedline.ConfigError, match=r"damaged\.json' is not a tokenizer file"):
        texts.tokenize(tmp_path / "damaged.json")


def test_tiktoken(texts: feedline.Dataset) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"it": 256, b"is": 257}
    encoding = tiktoken.Encoding(
        "own", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 258}
    )
    tokens = texts.tokenize(encoding, append_eod=True)
    assert [sample.input_ids.tolist() for sample in tokens] == [[*encoding.encode(text), 258] for text in TEXTS]
    assert tokens[2].input_ids.tolist() == [256, 32, 257, 258]


def test_sentencepiece(texts: feedline.Dataset, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 5), model_prefix=str(tmp_path / "own"), vocab_size=60, minloglevel=2,
        hard_vocab_limit=False,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "own.model"))
    for given in (processor, tmp_path / "own.model"):
        tokens = texts.tokenize(given, append_eod=True)
        expected = [[*processor.encode(text), processor.eos_id()] for text in TEXTS]
        assert [sample.input_ids.tolist() for sample in tokens] == expected


def test_transformers(texts: feedline.Dataset, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    trained(tmp_path / "model")
    fast = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path / "model"))
    expected = [[*fast(text)["input_ids"], fast.eos_token_id] for text in TEXTS]
    made = texts.tokenize(fast, append_eod=True)
    assert [sample.input_ids.tolist() for sample in made] == expected
    assert all(isinstance(sample.input_ids, np.ndarray) for sample in made)
