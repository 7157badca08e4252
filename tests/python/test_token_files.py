# SPDX-License-Identifier: Apache-2.0
"""`feedline tokenize`: Megatron's files, from any source, by any number of processes, after any interruption."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from made_tokenizers import BOS, CHATML, END, Blocks, Bytes, Dies, Stops, Words, read_megatron, text_of, trained

import feedline
from feedline.cli.root import run
from feedline.tokenize import documents, part_files, state
from feedline.tokenizing import Skipped, tokenize

TEXTS = [f"document {n} " + "é " * (n % 7) for n in range(40)]


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return lines(tmp_path / "corpus.jsonl", [{"text": text, "n": n} for n, text in enumerate(TEXTS)])


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BYTES_PER_PART", 300)
    monkeypatch.setattr(documents, "FEWEST_PER_PART", 7)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_each_document_is_a_sequence(tmp_path: Path, corpus: Path) -> None:
    report = tokenize(corpus, tmp_path / "out", tokenizer=Bytes(), append_eod=True, eod="<|end|>", num_workers=1)
    expected = [[BOS, *text.encode(), END] for text in TEXTS]
    stored = read_megatron(tmp_path / "out")
    assert stored == ("uint16", expected, list(range(len(TEXTS) + 1)))
    size = sum((tmp_path / f"out{end}").stat().st_size for end in (".bin", ".idx"))
    assert report == (
        str(tmp_path / "out"), len(TEXTS), sum(map(len, expected)), "uint16", size, 0, 1, 0, [],
    )  # fmt: skip
    assert {path.name for path in tmp_path.glob("out*")} == {"out.bin", "out.idx", "out.tokenize.json"}


def test_parts_of_any_size_have_every_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random lines, also empty and long ones, with both line ends and a byte-order mark."""
    random_lines = random.Random(5)
    texts, content = [], b"\xef\xbb\xbf"
    for number in range(25):
        texts.append(f"{number} " + "x" * random_lines.choice([0, 1, 5, 40, 300]))
        content += json.dumps({"text": texts[-1]}).encode() + random_lines.choice([b"\n", b"\r\n", b"\n\n", b"\n  \n"])
    path = tmp_path / "r.jsonl"
    monkeypatch.setattr(documents, "_BLOCK", 64)
    for whole in (content, content.rstrip(), content.rstrip() + b"\n"):
        path.write_bytes(whole)
        for size in (1, 2, 13, 50, 64, 1000, len(whole), 10**6):
            monkeypatch.setattr(documents, "BYTES_PER_PART", size)
            lines_of_file = documents.Lines("r", [str(path)], documents.Wanted("text"))
            parts = lines_of_file.parts()
            assert len(parts) == -(-len(whole) // size)
            read = [document for part in parts for document in lines_of_file.read(part)]
            assert [document.value for document in read] == texts and not any(document.error for document in read)
            for document in read:  # the key has the offset of the line
                at = int(document.key.rpartition(":")[2])
                assert json.loads(whole[at:].decode("utf-8-sig").splitlines()[0])["text"] == document.value


@pytest.mark.parametrize("end", ["jsonl.gz", "jsonl.bz2", "ndjson", "jsonl.zst"])
def test_compressed_lines(tmp_path: Path, corpus: Path, end: str) -> None:
    content = corpus.read_bytes()
    if end == "jsonl.zst":
        zstandard = pytest.importorskip("zstandard")
        half = len(content) // 2  # two frames, as parallel compressors write
        packed = b"".join(zstandard.ZstdCompressor().compress(part) for part in (content[:half], content[half:]))
    else:
        packed = {"gz": gzip.compress, "bz2": bz2.compress, "ndjson": bytes}[end.rpartition(".")[2]](content)
    (tmp_path / f"c.{end}").write_bytes(packed)
    tokenize(tmp_path / f"c.{end}", tmp_path / "out", tokenizer=Bytes(), num_workers=1)
    assert read_megatron(tmp_path / "out").sequences == [[BOS, *text.encode()] for text in TEXTS]
    if end != "ndjson":
        (tmp_path / f"d.{end}").write_bytes(packed[:-20])
        with pytest.raises(feedline.DataError, match="is damaged or truncated after"):
            tokenize(tmp_path / f"d.{end}", tmp_path / "damaged", tokenizer=Bytes(), num_workers=1)


def test_lists_patterns_and_folders_in_order(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("b", "a"):
        lines(tmp_path / "in" / f"{name}.jsonl", [{"text": f"{name}{n}"} for n in range(3)])
    expected = [[BOS, *f"{name}{n}".encode()] for name in "ab" for n in range(3)]
    for number, source in enumerate((tmp_path / "in", str(tmp_path / "in" / "*.jsonl"))):
        tokenize(source, tmp_path / f"out{number}", tokenizer=Bytes(), num_workers=1)
        assert read_megatron(tmp_path / f"out{number}").sequences == expected
        opened = feedline.open(source, fields=["text"])  # in the same order
        assert [[BOS, *sample.text.encode()] for sample in opened] == expected
    tokenize([tmp_path / "in" / "b.jsonl", tmp_path / "in" / "a.jsonl"], tmp_path / "out", tokenizer=Bytes(), jobs=1)
    assert read_megatron(tmp_path / "out").sequences == expected[3:] + expected[:3]


def test_tars_tables_and_opened_datasets(tmp_path: Path, small_parts: None) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for number, text in enumerate(TEXTS):
            member = tarfile.TarInfo(f"{number:03d}.txt")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    expected = [[BOS, *text.encode()] for text in TEXTS]
    report = tokenize(tmp_path / "t.tar", tmp_path / "tar", tokenizer=Bytes(), field="txt", num_workers=1)
    assert read_megatron(tmp_path / "tar").sequences == expected and report.parts == -(-len(TEXTS) // 7)
    chosen = feedline.open(tmp_path / "t.tar", fields=["txt"]).subset([5, 3])
    upper = chosen.map(str.upper, "txt")
    tokenize(upper, tmp_path / "chosen", tokenizer=Bytes(), field="txt", num_workers=1)
    assert read_megatron(tmp_path / "chosen").sequences == [[BOS, *TEXTS[n].upper().encode()] for n in (5, 3)]
    with pytest.raises(feedline.ConfigError, match="field 'text' does not exist; the fields are txt"):
        tokenize(chosen, tmp_path / "none", tokenizer=Bytes(), num_workers=1)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns(tmp_path: Path, small_parts: None, kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"content": TEXTS})
    path = str(tmp_path / f"t.{kind}")
    if kind == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path, row_group_size=9)
    else:
        with pyarrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    tokenize(path, tmp_path / "out", tokenizer=Bytes(), field="content", num_workers=1)
    assert read_megatron(tmp_path / "out").sequences == [[BOS, *text.encode()] for text in TEXTS]


def test_a_field_of_an_object_in_a_line(tmp_path: Path) -> None:
    path = lines(tmp_path / "m.jsonl", [{"meta": {"text": "a b"}}, {"meta.text": "ccc"}])
    tokenize(path, tmp_path / "out", tokenizer=Words(), field="meta.text", num_workers=1)
    assert read_megatron(tmp_path / "out").sequences == [[1, 1], [3]]


def test_the_dtype_is_the_smallest_that_the_vocabulary_fits(tmp_path: Path, corpus: Path) -> None:
    for extra, dtype in ((2**16 - 260, "uint16"), (2**16 - 259, "int32")):
        report = tokenize(corpus, tmp_path / dtype, tokenizer=Bytes(extra), num_workers=1)
        assert report.dtype == read_megatron(tmp_path / dtype).dtype == dtype
    sequences = [[BOS, *text.encode()] for text in TEXTS]
    assert read_megatron(tmp_path / "uint16").sequences == read_megatron(tmp_path / "int32").sequences == sequences

    class Unknown(Words):
        vocab_size = None

        def encode(self, text: str) -> list[int]:
            return [2**31 - (text != TEXTS[3])]

    with pytest.raises(
        feedline.DataError, match=f"field 'text': the token id {2**31} does not fit into int32"
    ) as caught:
        tokenize(corpus, tmp_path / "unknown", tokenizer=Unknown(), num_workers=1)
    assert caught.value.shard == str(corpus)


def test_documents_without_tokens_are_left_out_and_counted(tmp_path: Path) -> None:
    path = lines(tmp_path / "e.jsonl", [{"text": text} for text in ("", "a", "  ", "bb cc", "")])
    report = tokenize(path, tmp_path / "out", tokenizer=Words(), append_eod=True, num_workers=1)
    assert read_megatron(tmp_path / "out") == ("uint16", [[1, 999], [2, 2, 999]], [0, 1, 2])
    assert (report.documents, report.tokens, report.empty) == (2, 5, 3)
    lines(path, [{"text": ""}] * 3)
    with pytest.raises(feedline.DataError, match="no document has tokens: every text of the field 'text' is empty"):
        tokenize(path, tmp_path / "none", tokenizer=Words(), num_workers=1)
    assert not (tmp_path / "none.bin").exists() and not (tmp_path / "none.idx").exists()


BAD = [
    (b'{"text": "so bad"}', "Words raised KeyError: 'bad'"),
    (b'{"text": "big"}', "Words returned the token id 5000; ids must be at least 0 and less than 1,000"),
    (b'{"text": 3}', "the value is not text but int"),
    (b'{"text": null}', "the text is missing"),
    (b'{"other": "x"}', "the line has no such field; it has other"),
    (b"[1]", "the line has no such field; it has none: the line is a list"),
    (b'{"text": "x"', "the line is not valid JSON"),
    (b'{"text": "\xff"}', "the line is not valid JSON: 'utf-8' codec can't decode"),
]


@pytest.mark.parametrize(("line", "expected"), BAD)
def test_a_bad_document_names_file_offset_and_field(tmp_path: Path, line: bytes, expected: str) -> None:
    path = tmp_path / "b.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line + b'\n{"text": "good one"}\n')
    with pytest.raises(feedline.DataError) as caught:
        tokenize(path, tmp_path / "out", tokenizer=Words(), num_workers=1)
    error = caught.value
    assert f"tokenize: field 'text': {expected}" in str(error)
    assert str(error).endswith(f"[dataset {path}, shard {path}, offset 17]")
    assert (error.dataset, error.shard, error.offset) == (str(path), str(path), 17)
    report = tokenize(path, tmp_path / "skipped", tokenizer=Words(), on_error="skip", num_workers=1)
    assert read_megatron(tmp_path / "skipped").sequences == [[4], [4, 3]]
    assert report.skipped == [Skipped(f"{path}:17", str(error))]


def test_a_bad_sample_of_a_dataset_is_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for key, content in (("a", b"fine"), ("b", b"\xff"), ("c", b"so bad")):
            member = tarfile.TarInfo(f"{key}.txt")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    report = tokenize(tmp_path / "t.tar", tmp_path / "o", tokenizer=Words(), field="txt", on_error="skip", jobs=1)
    assert read_megatron(tmp_path / "o").sequences == [[4]]
    assert [skipped.key for skipped in report.skipped] == ["b", "c"]
    dataset = f"dataset {tmp_path / 't.tar'}"
    assert dataset in report.skipped[0].why and "'txt'" in report.skipped[0].why
    assert report.skipped[1].why == f"tokenize: field 'txt': Words raised KeyError: 'bad' [{dataset}, key c]"


# ---- interruptions ----


@pytest.fixture
def uninterrupted(tmp_path: Path, corpus: Path, small_parts: None) -> dict[str, bytes]:
    (tmp_path / "whole").mkdir()
    tokenize(corpus, tmp_path / "whole" / "out", tokenizer=Stops(), num_workers=1)
    return files_in(tmp_path / "whole")


def test_a_call_resumes_after_finished_parts(
    tmp_path: Path, corpus: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resumed").mkdir()
    output = tmp_path / "resumed" / "out"
    for at in (0, 12, 13, 39):
        monkeypatch.setattr(Stops, "at", TEXTS[at])
        with pytest.raises(KeyboardInterrupt):
            tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
        assert not list(output.parent.glob("out.bin")) and not list(output.parent.glob("*/*.unfinished"))
    monkeypatch.setattr(Stops, "at", "")
    Stops.seen, done = 0, []
    report = tokenize(corpus, output, tokenizer=Stops(), num_workers=1, progress=lambda *now: done.append(now))
    found = report.parts_found
    assert 5 < found < report.parts
    assert done == [(now, report.parts) for now in range(found, report.parts + 1)]
    assert 0 < Stops.seen < 10, "of the last part only"
    assert files_in(output.parent) == uninterrupted
    # the finished output is not written again
    Stops.seen = 0
    again = tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
    assert again == report._replace(parts_found=report.parts) and Stops.seen == 0
    assert files_in(output.parent) == uninterrupted and not list(output.parent.glob("*/"))


def test_a_damaged_part_is_made_again(
    tmp_path: Path, corpus: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damaged").mkdir()
    output = tmp_path / "damaged" / "out"
    monkeypatch.setattr(Stops, "at", TEXTS[-1])
    with pytest.raises(KeyboardInterrupt):
        tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
    monkeypatch.setattr(Stops, "at", "")
    folder = output.with_name("out.tokenize.unfinished")
    finished = len(list(folder.glob("*.tokens")))
    part_files.tokens_path(folder, 1).write_bytes(b"\0\0")
    part_files.lengths_path(folder, 2).unlink()
    (folder / "000003.json").write_text("{")
    report = tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
    assert report.parts_found == finished - 3 and files_in(output.parent) == uninterrupted


@pytest.mark.parametrize("file", ["out.bin", "out.idx", "out.tokenize.json"])
def test_an_end_while_publishing(
    tmp_path: Path, corpus: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    (tmp_path / "published").mkdir()
    output = tmp_path / "published" / "out"
    replace = os.replace

    def stops(source: Any, target: Any) -> None:
        if Path(target).name == file:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", stops)
        tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
    assert (output.with_name("out.idx")).exists() == (file == "out.tokenize.json")
    Stops.seen = 0
    tokenize(corpus, output, tokenizer=Stops(), num_workers=1)
    assert Stops.seen == 0 and files_in(output.parent) == uninterrupted


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}]
from made_tokenizers import Blocks
from feedline.tokenize import documents
from feedline.tokenizing import tokenize

documents.BYTES_PER_PART = 300
tokenize({source!r}, {output!r}, tokenizer=Blocks(), num_workers=1)
"""


def test_a_killed_process_leaves_a_state_to_resume_from(
    tmp_path: Path, corpus: Path, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "killed").mkdir()
    output = tmp_path / "killed" / "out"
    script = SCRIPT.format(tests=str(Path(__file__).parent), source=str(corpus), output=str(output))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"blocked\n"
        with pytest.raises(feedline.ConfigError, match=r"is writing .*out; wait for it, or choose another name"):
            tokenize(corpus, output, tokenizer=Words(), num_workers=1)
        process.send_signal(signal.SIGKILL)
    folder = output.with_name("out.tokenize.unfinished")
    finished = len(list(folder.glob("*.json"))) - 1
    monkeypatch.setattr(Blocks, "encode", Words.encode)
    report = tokenize(corpus, output, tokenizer=Blocks(), num_workers=1)
    assert 0 < finished == report.parts_found < report.parts
    assert read_megatron(output).sequences == [[len(word) for word in text.split()] for text in TEXTS]
    assert sorted(path.name for path in output.parent.iterdir()) == ["out.bin", "out.idx", "out.tokenize.json"]


def test_a_killed_worker_is_reported(tmp_path: Path, corpus: Path, small_parts: None) -> None:
    with pytest.raises(
        feedline.WorkerDiedError, match=r"was killed by signal 9 .* while it made part \d+; the same call"
    ):
        tokenize(corpus, tmp_path / "out", tokenizer=Dies(), num_workers=2)
    assert not (tmp_path / "out.bin").exists()
    tokenize(corpus, tmp_path / "out", tokenizer=Dies(), num_workers=1)
    assert read_megatron(tmp_path / "out").sequences == [[len(word) for word in text.split()] for text in TEXTS]


def test_processes_write_the_same_bytes(tmp_path: Path, corpus: Path, uninterrupted: dict[str, bytes]) -> None:
    (tmp_path / "two").mkdir()
    report = tokenize(corpus, tmp_path / "two" / "out", tokenizer=Stops(), num_workers=2)
    assert report.parts > 5 and files_in(tmp_path / "two") == uninterrupted


# ---- refusals ----


def test_other_arguments_and_sources(tmp_path: Path, corpus: Path) -> None:
    tokenize(corpus, tmp_path / "out", tokenizer=Words(), num_workers=1)
    with pytest.raises(
        feedline.ConfigError, match=r"out\.bin was written with other arguments: end_id was None and is"
    ):
        tokenize(corpus, tmp_path / "out", tokenizer=Words(), append_eod=True, num_workers=1)
    with pytest.raises(feedline.ConfigError, match="tokenizer_sha256 was"):
        tokenize(corpus, tmp_path / "out", tokenizer=Bytes(), num_workers=1)
    with open(corpus, "a") as file:
        file.write('{"text": "more"}\n')
    with pytest.raises(feedline.ConfigError, match="source_fingerprint was"):
        tokenize(corpus, tmp_path / "out", tokenizer=Words(), num_workers=1)
    with open(tmp_path / "out.bin", "ab") as file:
        file.write(b"x")
    with pytest.raises(feedline.DataError, match=r"out\.bin or .*out\.idx has changed since it was written"):
        tokenize(corpus, tmp_path / "out", tokenizer=Words(), num_workers=1)
    (tmp_path / "foreign.idx").write_bytes(b"x")
    with pytest.raises(feedline.ConfigError, match=r"foreign\.idx exists and was not written by tokenize"):
        tokenize(corpus, tmp_path / "foreign", tokenizer=Words(), num_workers=1)


def test_arguments_of_an_interrupted_call(
    tmp_path: Path, corpus: Path, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stops, "at", TEXTS[20])
    with pytest.raises(KeyboardInterrupt):
        tokenize(corpus, tmp_path / "out", tokenizer=Stops(), num_workers=1)
    with pytest.raises(
        feedline.ConfigError, match=r"out\.tokenize\.unfinished was started with other arguments: on_error"
    ):
        tokenize(corpus, tmp_path / "out", tokenizer=Stops(), on_error="skip", num_workers=1)


def test_a_full_disk_is_named(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "write_index", full)
        with pytest.raises(
            feedline.StorageError, match=r"cannot write .*out: No space left on device\. Finished parts"
        ):
            tokenize(corpus, tmp_path / "out", tokenizer=Words(), num_workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(state, "write_durably", full)  # of the arguments, at the start
        with pytest.raises(feedline.StorageError, match=r"cannot write .*other: No space left on device"):
            tokenize(corpus, tmp_path / "other", tokenizer=Words(), num_workers=1)
    assert not (tmp_path / "out.idx").exists() and not list(tmp_path.glob("*.unfinished.*"))
    assert tokenize(corpus, tmp_path / "out", tokenizer=Words(), num_workers=1).parts_found == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"field": ""}, "field must be a field's name, not ''"),
        ({"eod": "x"}, r"eod requires append_eod=True \(--append-eod\)"),
        ({"on_error": "stop"}, "on_error must be"),
        ({"num_workers": 0}, "num_workers"),
        ({"jobs": 0}, "jobs"),
        ({"tokenizer": 3}, "tokenizer must be a path"),
        ({"progress": 3}, "progress must be a function of two numbers, not 3"),
        ({"source": 3}, "source must be a path or a list of shards, not 3"),
        ({"source": [3]}, r"source must be a path or a list of shards, not \[3\]"),
    ],
)
def test_wrong_arguments(tmp_path: Path, corpus: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(feedline.ConfigError, match=expected):
        tokenize(**{"source": corpus, "output": tmp_path / "out", "tokenizer": Words(), **options})
    with pytest.raises(feedline.StorageError, match=r"nowhere\.jsonl"):
        tokenize(tmp_path / "nowhere.jsonl", tmp_path / "out", tokenizer=Words())
    with pytest.raises(feedline.ConfigError, match="output"):
        tokenize(corpus, "s3://bucket/out", tokenizer=Words())


def test_an_object_that_cannot_be_pickled_needs_one_process(tmp_path: Path, corpus: Path, small_parts: None) -> None:
    class Local(Words):
        pass

    with pytest.raises(feedline.ConfigError, match=r"need a picklable source and tokenizer: .*num_workers=1"):
        tokenize(corpus, tmp_path / "out", tokenizer=Local(), num_workers=2)


def test_the_command(tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bpe = trained(tmp_path / "model")
    given = ["tokenize", str(corpus), str(tmp_path / "out"), "--tokenizer", str(tmp_path / "model")]
    assert run([*given, "--append-eod", "--jobs", "1"]) == 0
    expected = [[*bpe.encode(text).ids, 0] for text in TEXTS]
    assert read_megatron(tmp_path / "out").sequences == expected
    shown = capsys.readouterr().out
    assert f"{len(TEXTS)} documents, {sum(map(len, expected)):,} tokens (uint16)" in shown
    assert run([*given, "--append-eod", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts_found"] == 1
    with open(corpus, "a") as file:
        file.write("{\n")
    assert run([*given[:2], str(tmp_path / "bad"), *given[3:]]) == 3
    assert run([*given[:2], str(tmp_path / "bad"), *given[3:]] + ["--on-error", "skip", "--no-special-tokens"]) == 2
    assert run([*given[:2], str(tmp_path / "skip"), *given[3:], "--on-error", "skip"]) == 1
    assert "skipped tokenize: field 'text': the line is not valid JSON" in capsys.readouterr().out


# ---- conversations ----

CHATS: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": "a" * (n % 4 + 1)}]}
    for n in range(20)
]
CHATS[3]["tools"] = [{"name": "look_up"}]


def masks_of(prefix: Path) -> list[list[bool]]:
    stored = read_megatron(prefix)
    masks = iter(prefix.with_name(prefix.name + ".loss_mask").read_bytes())
    found = [[bool(next(masks)) for _ in sequence] for sequence in stored.sequences]
    assert next(masks, None) is None
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_chats_and_their_masks_are_those_of_loading(tmp_path: Path, small_parts: None, workers: int) -> None:
    pytest.importorskip("jinja2")
    path = lines(tmp_path / "chats.jsonl", CHATS)
    options: dict[str, Any] = {"tokenizer": Bytes(), "messages": "messages", "chat_template": CHATML}
    report = tokenize(path, tmp_path / "out", num_workers=workers, max_length=60, **options)
    opened = feedline.open(path, fields=["messages", "tools"], missing="none")
    loaded = opened.tokenize(Bytes(), messages="messages", chat_template=CHATML, max_length=60)
    expected = [(sample.input_ids.tolist(), sample.loss_mask.tolist()) for sample in loaded]
    assert list(zip(read_megatron(tmp_path / "out").sequences, masks_of(tmp_path / "out"), strict=True)) == expected
    assert any("look_up" in text_of(ids) for ids, _ in expected)
    sizes = [(tmp_path / f"out{end}").stat().st_size for end in (".bin", ".idx", ".loss_mask")]
    assert report.parts > 1 and report.bytes == sum(sizes)
    read = feedline.open(tmp_path / "out.idx")
    assert [(sample.tokens.tolist(), sample.loss_mask.tolist()) for sample in read] == expected
    with pytest.raises(feedline.ConfigError, match="chat_template was"):
        tokenize(path, tmp_path / "out", num_workers=1, max_length=60, **options | {"chat_template": CHATML + " "})
    os.truncate(tmp_path / "out.loss_mask", 3)
    with pytest.raises(feedline.DataError, match=r"loss_mask|has 3 bytes, but the index describes"):
        feedline.open(tmp_path / "out.idx")


def test_chats_of_other_sources(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {name: [json.dumps(chat.get(name)) for chat in CHATS] for name in ("messages", "tools")}
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    options: dict[str, Any] = {"tokenizer": Bytes(), "messages": "messages", "chat_template": CHATML, "num_workers": 1}
    tokenize(tmp_path / "t.parquet", tmp_path / "table", **options)
    tokenize(lines(tmp_path / "chats.jsonl", CHATS), tmp_path / "lines", **options)
    for end in (".bin", ".idx", ".loss_mask"):
        assert (tmp_path / f"table{end}").read_bytes() == (tmp_path / f"lines{end}").read_bytes()
    # a function of the dataset may convert other forms
    sharegpt = lines(tmp_path / "s.jsonl", [{"talk": chat["messages"], "tools": chat.get("tools")} for chat in CHATS])
    renamed = feedline.open(sharegpt, fields=["talk", "tools"], missing="none").map(_renamed)
    tokenize(renamed, tmp_path / "renamed", **options)
    assert (tmp_path / "renamed.bin").read_bytes() == (tmp_path / "lines.bin").read_bytes()


def _renamed(sample: dict[str, Any]) -> dict[str, Any]:
    return {"messages": sample["talk"], "tools": sample["tools"]}


def test_bad_chats_are_named_or_skipped(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    bad: list[dict[str, Any]] = [{"messages": [{"role": "user", "content": "x"}]}, {"other": 1}, {"messages": None}]
    path = lines(tmp_path / "chats.jsonl", [CHATS[0], *bad, CHATS[1]])
    options: dict[str, Any] = {"tokenizer": Bytes(), "messages": "messages", "chat_template": CHATML, "num_workers": 1}
    with pytest.raises(feedline.DataError, match="field 'messages': no message has the role \"assistant\"") as raised:
        tokenize(path, tmp_path / "out", **options)
    assert raised.value.offset == len(json.dumps(CHATS[0])) + 1
    report = tokenize(path, tmp_path / "skipped", on_error="skip", **options)
    assert report.documents == 2 and len(masks_of(tmp_path / "skipped")) == 2
    whys = [skipped.why for skipped in report.skipped]
    assert "the line has no such field; it has other" in whys[1] and "not None" in whys[2]


def test_the_command_writes_chats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jinja2")
    trained(tmp_path / "model")
    path = lines(tmp_path / "chats.jsonl", CHATS)
    arguments = ["tokenize", str(path), str(tmp_path / "out"), "--tokenizer", str(tmp_path / "model")]
    assert run([*arguments, "--messages", "messages", "--max-length", "64", "--jobs", "1"]) == 0
    assert "20 documents" in capsys.readouterr().out
    opened = feedline.open(path, fields=["messages", "tools"], missing="none")
    loaded = opened.tokenize(tmp_path / "model", messages="messages", max_length=64)
    assert masks_of(tmp_path / "out") == [sample.loss_mask.tolist() for sample in loaded]
    assert run([*arguments[:2], str(tmp_path / "b"), *arguments[3:], "--messages", "m", "--append-eod"]) != 0
    assert "append_eod is only for texts" in "".join(capsys.readouterr())
