# SPDX-License-Identifier: Apache-2.0
"""Texts and chats that are packed without a separate step: they are tokenized once, into the user's cache folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_tokenizers import CHATML, Bytes, Words, text_of
from packed_runs import rows_of

import feedline
from feedline.tokenize import cached, documents, state
from feedline.tokenizing import tokenize

pytest.importorskip("jinja2")
TALKS = [
    [{"role": "user", "content": "?" * (n % 5 + 1)}, {"role": "assistant", "content": "!" * (n % 9 + 1)}]
    for n in range(30)
]


class Exact(Bytes):
    """Has the serialization of the library's tokenizers, so tokens can be cached."""

    refuses = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Exact:
        return Exact(self._extra)

    def __reduce__(self) -> tuple[Any, ...]:
        return Exact, (self._extra,)

    def to_str(self) -> str:
        return f"bytes {self._extra}"

    def encode_batch(self, texts: Any, add_special_tokens: bool = True) -> Any:
        assert not self.refuses, "tokenized again"
        return super().encode_batch(texts, add_special_tokens)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "feedline" / "tokens"


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller parts."""
    monkeypatch.setattr(documents, "FEWEST_PER_PART", 7)


def written(folder: Path, talks: list[Any] = TALKS) -> feedline.Dataset:
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    return feedline.open(path, fields=["messages"])


def chats(folder: Path, talks: list[Any] = TALKS, **options: Any) -> feedline.Dataset:
    return written(folder, talks).tokenize(Exact(), messages="messages", **{"chat_template": CHATML, **options})


def entries(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def batches(packed: feedline.PackedSequences, **options: Any) -> list[Any]:
    with packed.loader(2, output="numpy", shuffle=True, seed=3, **options) as loader:
        return [(batch.input_ids.tolist(), batch.labels.tolist(), batch.cu_seqlens.tolist()) for batch in loader]


def test_packs_are_those_of_stored_tokens_and_masks(tmp_path: Path, once: None) -> None:
    tokens = chats(tmp_path)
    ids, masks = zip(*((sample.input_ids, sample.loss_mask) for sample in tokens), strict=True)
    memory = feedline.arrays(input_ids=feedline.ragged(list(ids)), loss_mask=feedline.ragged(list(masks)))
    expected = batches(memory.pack_sequences(128))
    assert batches(tokens.pack_sequences(128)) == expected
    trained = [label for _, labels, _ in expected for row in labels for label in row if label != -100]
    assert text_of(sorted(trained)) == "!" * sum(n % 9 + 1 for n in range(30)) + "<|im_end|>" * 30


def test_later_runs_reuse_the_tokens(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = batches(chats(tmp_path).pack_sequences(128))
    monkeypatch.setattr(Exact, "refuses", True)
    assert batches(chats(tmp_path).pack_sequences(128, field="input_ids")) == expected
    moved = tmp_path / "moved"
    moved.mkdir()
    assert batches(chats(moved).pack_sequences(128)) == expected  # the text counts, not the path
    assert len(entries(cache)) == 1


def test_other_tokens_are_written_separately(tmp_path: Path, cache: Path) -> None:
    packed = [
        chats(tmp_path).pack_sequences(128),
        chats(tmp_path, max_length=30).pack_sequences(128),
        chats(tmp_path, chat_template=CHATML.replace("<|im_end|>", "<|end|>")).pack_sequences(128),
        chats(tmp_path, template_arguments={"tools": None}).pack_sequences(128),
        chats(tmp_path, [*TALKS[:-1], TALKS[0]]).pack_sequences(128),
        chats(tmp_path).subset(range(20)).pack_sequences(128),
    ]
    assert len(entries(cache)) == 6 and [one.documents for one in packed] == [30] * 5 + [20]
    texts = feedline.open(tmp_path / "chats.jsonl", fields=["messages:text"])
    for options in ({}, {"add_special_tokens": False}, {"append_eod": True, "eod": "<|end|>"}):
        texts.tokenize(Exact(), "messages", **options).pack_sequences(128)  # type: ignore[arg-type]
    texts.tokenize(Exact(1), "messages").pack_sequences(128)
    assert len(entries(cache)) == 10


def test_texts_have_no_masks(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "ab"}\n{"text": "cde"}\n')
    tokens = feedline.open(tmp_path / "t.jsonl", fields=["text"]).tokenize(Exact(), add_special_tokens=False)
    with tokens.pack_sequences(8).loader(1, output="numpy") as loader:
        assert [row for batch in loader for row in rows_of(batch)] == [(tuple(b"ab"), tuple(b"cde"))]


def test_a_changed_table_of_the_same_size_is_noticed(tmp_path: Path) -> None:
    """The fingerprint of a Parquet file does not depend on all values."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    def packed(text: str) -> Any:
        table = pa.table({"text": [text] * 20})
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet", compression="none", use_dictionary=False)
        os.utime(tmp_path / "t.parquet", ns=(0, ord(text[0])))
        dataset = feedline.open(tmp_path / "t.parquet", fields=["text"]).tokenize(Exact(), add_special_tokens=False)
        return dataset.fingerprint, batches(dataset.pack_sequences(8))

    first, second = packed("aaa"), packed("bbb")
    assert first[0] == second[0] and first[1] != second[1]


def test_a_state_resumes_on_other_ranks_after_the_cache_was_removed(tmp_path: Path, cache: Path, once: None) -> None:
    options: dict[str, Any] = {"shuffle": True, "seed": 5, "output": "numpy", "uneven": "exact"}
    with chats(tmp_path).pack_sequences(64).loader(1, **options) as loader:
        stream = [batch.input_ids.tolist() for batch in loader]
    assert len(stream) > 10
    with chats(tmp_path).pack_sequences(64).loader(2, rank=1, world_size=2, **options) as loader:
        next(iter(loader))
        saved = json.dumps(loader.state_dict())
    shutil.rmtree(cache)
    rest: list[Any] = []
    for rank in range(3):
        with chats(tmp_path).pack_sequences(64).loader(1, rank=rank, world_size=3, **options) as loader:
            loader.load_state_dict(json.loads(saved))
            rest += [batch.input_ids.tolist() for batch in loader]
    assert sorted(rest) == sorted(stream[4:])


@pytest.mark.parametrize("damaged", ["train.bin", "train.idx", "train.loss_mask", "train.tokenize.json"])
@pytest.mark.parametrize("how", ["removed", "truncated"])
def test_damaged_tokens_are_written_again(tmp_path: Path, cache: Path, damaged: str, how: str) -> None:
    expected = batches(chats(tmp_path).pack_sequences(128))
    (file,) = cache.glob(f"*/{damaged}")
    if how == "removed":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size // 2)
    assert batches(chats(tmp_path).pack_sequences(128)) == expected
    assert sorted(path.name for path in file.parent.iterdir()) == [
        "lock", "train.bin", "train.idx", "train.loss_mask", "train.tokenize.json",
    ]  # fmt: skip


SCRIPT = """
import os, signal, sys, time
sys.path[:0] = [{tests!r}]
import test_packed_texts as here
from pathlib import Path

class Slow(here.Exact):
    def __deepcopy__(self, memo):
        return Slow()

    def encode_batch(self, texts, add_special_tokens=True):
        with open({log!r}, "a") as log:
            print(os.getpid(), file=log)
        if {dies!r} and sum(1 for _ in open({log!r})) == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        return super().encode_batch(texts, add_special_tokens)

here.documents.FEWEST_PER_PART = 7
dataset = here.feedline.open({path!r}, fields=["messages"])
tokens = dataset.tokenize(Slow(), messages="messages", chat_template=here.CHATML)
print(here.batches(tokens.pack_sequences(128)))
"""


@pytest.mark.parametrize("dies", [False, True])
def test_one_process_writes_and_the_others_wait(tmp_path: Path, dies: bool) -> None:
    """If the writer is killed, another process continues after its finished parts."""
    log, tokens = tmp_path / "calls", chats(tmp_path)
    script = SCRIPT.format(tests=str(Path(__file__).parent), log=str(log), path=tokens.source, dies=dies)
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = [process.communicate(timeout=120)[0] for process in processes]
    assert sorted(process.returncode for process in processes) == ([-signal.SIGKILL, 0, 0] if dies else [0, 0, 0])
    texts = {text for text in printed if text}
    assert len(texts) == 1 and texts == {f"{batches(tokens.pack_sequences(128))}\n"}
    calls = log.read_text().splitlines()
    assert len(set(calls)) == (2 if dies else 1)
    assert 30 <= len(calls) < (50 if dies else 33)


def test_parts_that_a_killed_process_left_are_removed(tmp_path: Path) -> None:
    tokens = chats(tmp_path)
    expected = batches(tokens.pack_sequences(128))
    (index,) = (tmp_path / "cache").rglob("train.idx")
    left = index.with_name("train.tokenize.unfinished")
    left.mkdir()
    (left / "000000.tokens").touch()
    assert batches(tokens.pack_sequences(128)) == expected
    assert not left.exists()


def test_a_long_run_shows_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    chats(tmp_path).pack_sequences(128)
    assert capfd.readouterr() == ("", "")  # too short
    from feedline.tokenize import progress_line

    monkeypatch.setattr(progress_line, "_FIRST_S", 0.0)
    monkeypatch.setattr(progress_line, "_LOG_S", 0.0)
    monkeypatch.setattr(cached, "_AT_ONCE", 10)
    chats(tmp_path, max_length=50).pack_sequences(128)
    shown, lines = capfd.readouterr()
    path = tmp_path / "chats.jsonl"
    assert shown == "" and f"feedline: tokenizing {path}: 10 of 30 samples, " in lines
    assert " tokens, stored in " in lines.splitlines()[-1]


# ---- refusals ----


def test_a_full_or_read_only_cache_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = chats(tmp_path)
    command = rf"run `feedline tokenize {tmp_path}/chats.jsonl OUT --tokenizer MODEL --messages messages` first"

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "write_index", full)
        with pytest.raises(feedline.StorageError, match=f"No space left on device; {command}") as raised:
            tokens.pack_sequences(128)
    assert raised.value.errno == 28
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size]
    assert not left, "nothing remains on the full disk"
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with pytest.raises(feedline.StorageError, match=command):
        tokens.pack_sequences(128)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    with pytest.raises(feedline.StorageError, match=f"neither XDG_CACHE_HOME nor HOME is set; {command}"):
        tokens.pack_sequences(128)


def test_the_named_command_writes_the_same_packs(tmp_path: Path) -> None:
    expected = batches(chats(tmp_path).pack_sequences(128))
    tokenize(
        tmp_path / "chats.jsonl", tmp_path / "out", tokenizer=Exact(), messages="messages", chat_template=CHATML,
        num_workers=1,
    )  # fmt: skip
    assert batches(feedline.open(tmp_path / "out.idx").pack_sequences(128)) == expected


def test_a_refused_chat_is_named(tmp_path: Path) -> None:
    tokens = chats(tmp_path, [*TALKS[:9], [{"role": "user", "content": "?"}]])
    with pytest.raises(feedline.DataError, match='no message has the role "assistant"') as raised:
        tokens.pack_sequences(128)
    assert raised.value.record == 9
    assert str(raised.value).endswith('; to leave out such samples, pass on_error="skip" to pack_sequences')
    counts = tokens.pack_sequences(128, on_error="skip").count()
    assert counts["empty"] == 1
    assert counts["pieces"] == 9
    with pytest.raises(feedline.ConfigError, match="only supported after tokenize"):
        feedline.arrays(input_ids=feedline.ragged(np.arange(9), [4, 5])).pack_sequences(8, on_error="skip")


def test_code_that_may_change_is_refused(tmp_path: Path) -> None:
    opened = written(tmp_path)
    with pytest.raises(feedline.ConfigError, match="the results of map have unknown lengths"):
        opened.map(dict).pack_sequences(128)
    mapped = opened.map(dict).tokenize(Exact(), messages="messages", chat_template=CHATML)
    with pytest.raises(
        feedline.ConfigError, match=r"changes of the code of map\(dict\) .* feedline.tokenizing.tokenize"
    ):
        mapped.pack_sequences(128)
    texts = feedline.open(tmp_path / "chats.jsonl", fields=["messages:text"])
    with pytest.raises(feedline.ConfigError, match="changes of the tokenizer Words, which is Python code"):
        texts.tokenize(Words(), "messages").pack_sequences(128)
    with pytest.raises(feedline.ConfigError, match="the variables of the chat template are not JSON"):
        chats(tmp_path, template_arguments={"now": object()}).pack_sequences(128)
    with pytest.raises(feedline.ConfigError, match=r"omit field='loss_mask'"):
        chats(tmp_path).pack_sequences(128, field="loss_mask")
    with pytest.raises(feedline.ConfigError, match="length"):  # before anything is tokenized
        chats(tmp_path).pack_sequences(0)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("linked", [False, True])
def test_a_changed_file_in_a_folder_is_noticed(tmp_path: Path, linked: bool) -> None:
    real, folder = tmp_path / "real", tmp_path / "texts"
    real.mkdir()
    folder.mkdir()
    stored = real if linked else folder / "a"
    if linked:
        (folder / "a").symlink_to(real)
    stored.mkdir(exist_ok=True)
    for name in "xy":
        (stored / f"{name}.txt").write_text(name)

    def packed() -> list[int]:
        data = feedline.open(folder, fields="text=a/{key}.txt").tokenize(Exact(), field="text")
        return next(iter(data.pack_sequences(16).loader(1, output="numpy"))).input_ids.tolist()

    before = packed()
    status = (stored / "x.txt").stat()
    (stored / "x.txt").write_text("z")
    os.utime(stored / "x.txt", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert packed() != before


def test_texts_are_mixed_by_weight(tmp_path: Path) -> None:
    parts = []
    for letter, count in (("a", 5), ("b", 20)):
        lines = "".join(json.dumps({"text": letter * (3 + number)}) + "\n" for number in range(count))
        (tmp_path / f"{letter}.jsonl").write_text(lines)
        parts.append(feedline.open(tmp_path / f"{letter}.jsonl", fields=["text"]))
    mixed = feedline.mix(parts, weights=[1, 1], until="last").tokenize(Exact(), add_special_tokens=False)
    packed = mixed.pack_sequences(64)
    with packed.loader(1, shuffle=True, output="numpy", uneven="exact") as loader:
        first = [
            int(ids[documents == number][0])
            for batch in loader
            for ids, documents in zip(batch.input_ids, batch.document_ids, strict=True)
            for number in range(int(documents.max()) + 1)
        ]
    letters = Counter(first)
    assert len(letters) == 2
    assert set(letters.values()) == {20}, "until the last dataset ends, with equal weights"
