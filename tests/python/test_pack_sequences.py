# SPDX-License-Identifier: Apache-2.0
"""Packed sequences contain every token once, in the packs of an independent best-fit decreasing in NumPy, on any number
of ranks and after any interruption.
"""

from __future__ import annotations

import bisect
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import made_megatron
import numpy as np
import pytest
from packed_runs import epoch_of, random_case, rows_of, written

import feedline


def best_fit(lengths: list[int], row: int) -> list[int]:
    """Best-fit decreasing with a sorted list of free spaces: the sorted numbers of tokens in the packs."""
    pieces = [piece for n in lengths if n for piece in [row] * ((n - 1) // row) + [(n - 1) % row + 1]]
    free: list[int] = []
    for piece in sorted(pieces, reverse=True):
        at = bisect.bisect_left(free, piece)
        space = free.pop(at) if at < len(free) else row
        bisect.insort(free, space - piece)
    return sorted(row - space for space in free)


def test_packs_are_those_of_best_fit_decreasing(tmp_path: Path) -> None:
    lengths = np.minimum(np.random.default_rng(0).lognormal(3, 1, 500).astype(int), 400).tolist()
    packed = written(tmp_path, lengths).pack_sequences(128, window=500)
    with packed.loader(1, shuffle=True, seed=3, output="numpy") as loader:
        found = [sum(map(len, row)) for batch in epoch_of(loader) for row in batch]
    # packs with the same free space are interchangeable, so only the numbers of tokens must agree
    assert sorted(found) == best_fit(lengths, 128)


@pytest.mark.parametrize("method", ["best_fit", "concat"])
@pytest.mark.parametrize("window", [1, 7, 64, 1000])
def test_every_token_once_per_epoch(tmp_path: Path, method: Any, window: int) -> None:
    lengths = np.random.default_rng(window).integers(0, 70, 200).tolist()
    packed = written(tmp_path, lengths).pack_sequences(32, method, window=window)
    with packed.loader(3, shuffle=True, seed=1, uneven="exact", output="numpy") as loader:
        epochs = [epoch_of(loader) for _ in range(2)]
    for epoch in epochs:
        tokens = [token for batch in epoch for row in batch for piece in row for token in piece]
        assert sorted(tokens) == list(range(sum(lengths)))
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("seed", range(12))
def test_resumes_on_other_ranks_with_the_same_packs(tmp_path: Path, seed: int) -> None:
    random_case(np.random.default_rng(seed), tmp_path)


def test_a_state_after_the_last_batch_begins_the_next_epoch(tmp_path: Path) -> None:
    packed = written(tmp_path, [5] * 40).pack_sequences(10)
    options: dict[str, Any] = {"shuffle": True, "output": "numpy"}
    with packed.loader(4, **options) as loader:
        iterator = iter(loader)
        for _ in range(len(loader)):
            next(iterator)
        state = loader.state_dict()
        expected = epoch_of(loader)  # of epoch 1
    with packed.loader(4, **options) as loader:
        loader.load_state_dict(state)
        assert loader.epoch == 1
        assert epoch_of(loader) == expected


@pytest.mark.parametrize("uneven", ["pad", "drop", "exact"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_last_global_batch(tmp_path: Path, uneven: Any, drop_last: bool) -> None:
    packed = written(tmp_path, [10] * 11).pack_sequences(10)  # 11 packs, 4 in a global batch
    rows, lengths = [], []
    for rank in range(2):
        with packed.loader(
            2, rank=rank, world_size=2, uneven=uneven, drop_last=drop_last, output="numpy", shuffle=True
        ) as loader:
            lengths.append(len(loader))
            rows.append([row for batch in epoch_of(loader) for row in batch])
    counts = Counter(row for part in rows for row in part)
    if drop_last:
        assert (lengths, list(map(len, rows)), counts.total()) == ([2, 2], [4, 4], 8)
    elif uneven == "pad":  # 3 packs, and one again
        assert (lengths, list(map(len, rows)), len(counts)) == ([3, 3], [6, 6], 11)
    elif uneven == "drop":
        assert (lengths, list(map(len, rows)), len(counts)) == ([3, 3], [5, 5], 10)
    else:
        assert (lengths, list(map(len, rows)), len(counts)) == ([3, 3], [6, 5], 11)


def test_ranks_get_similar_costs(tmp_path: Path) -> None:
    lengths = np.clip(np.random.default_rng(5).lognormal(6.2, 1.15, 3000), 1, 32768).astype(int).tolist()
    packed = written(tmp_path, lengths).pack_sequences(8192)

    def costs_of(**options: Any) -> np.ndarray:
        with packed.loader(shuffle=True, drop_last=True, output="numpy", num_workers=1, **options) as loader:
            return np.array([(np.diff(batch.cu_seqlens).astype(float) ** 2).sum() for batch in loader])

    dealt = np.stack([costs_of(batch_size=8, rank=rank, world_size=4) for rank in range(4)], 1)
    in_order = costs_of(batch_size=1)[: dealt.size * 8].reshape(-1, 4, 8).sum(2)
    assert in_order.sum(1) == pytest.approx(dealt.sum(1))
    assert np.median(dealt.max(1) / dealt.mean(1)) < 1.02
    assert np.median(in_order.max(1) / in_order.mean(1)) > 1.1


@pytest.mark.parametrize(
    ("mean", "sigma", "least", "most"), [(6.2, 1.15, 1, 10**6), (np.log(400), 1.0, 16, 8192)], ids=["web", "chat"]
)
def test_fill(tmp_path: Path, mean: float, sigma: float, least: int, most: int) -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(mean, sigma, 2**14), least, most).astype(int)
    dataset = feedline.open(made_megatron.write_lengths(tmp_path / "a", lengths))
    counts = dataset.pack_sequences(8192, window=2**14).count()
    assert counts["documents"] == 2**14
    assert counts["tokens"] == lengths.sum()
    assert counts["fill"] > 0.999


@pytest.mark.parametrize(
    ("long", "tokens", "expected"),
    [
        ("split", [*range(25)], {"split": 1, "dropped": 0, "truncated": 0, "lost_tokens": 0}),
        ("truncate", [*range(10), *range(22, 25)], {"split": 0, "dropped": 0, "truncated": 1, "lost_tokens": 12}),
        ("drop", [22, 23, 24], {"split": 0, "dropped": 1, "truncated": 0, "lost_tokens": 22}),
    ],
)
def test_long_documents(tmp_path: Path, long: Any, tokens: list[int], expected: dict[str, int]) -> None:
    packed = written(tmp_path, [22, 0, 3]).pack_sequences(10, long=long)
    with packed.loader(1, output="numpy") as loader:
        rows = [row for batch in epoch_of(loader) for row in batch]
    assert sorted(token for row in rows for piece in row for token in piece) == tokens
    counts = packed.count()
    assert {name: counts[name] for name in expected} == expected
    assert (counts["documents"], counts["empty"], counts["packs"]) == (3, 1, len(rows))
    words = {"split": "1 split", "truncate": "1 truncated", "drop": "1 dropped"}
    assert words[long] in packed.explain()
    assert "1 empty" in packed.explain()


def test_next_token_labels(tmp_path: Path) -> None:
    packed = written(tmp_path, [12, 3]).pack_sequences(8, labels="next_token")
    with packed.loader(1, output="numpy") as loader:
        found = {}
        for batch in loader:
            for token, label in zip(batch.input_ids[0].tolist(), batch.labels[0].tolist(), strict=True):
                if label != -100:
                    found[token] = label
    # also across the end of a row; the last token of each document has no label
    assert found == {token: token + 1 for token in range(14) if token != 11}


def test_lists_in_memory_and_in_tables_pack_like_token_files(tmp_path: Path) -> None:
    lengths = np.random.default_rng(2).integers(0, 40, 100).tolist()
    files = written(tmp_path, lengths)
    options: dict[str, Any] = {"shuffle": True, "seed": 4, "output": "numpy"}
    with files.pack_sequences(32).loader(2, **options) as loader:
        expected = epoch_of(loader)
    values = np.arange(sum(lengths), dtype=np.int32)
    memory = feedline.arrays(input_ids=feedline.ragged(values, lengths))
    with memory.pack_sequences(32).loader(2, **options) as loader:
        assert epoch_of(loader) == expected
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    ends = np.cumsum([0, *lengths])
    column = pa.array([values[a:b].tolist() for a, b in itertools.pairwise(ends)], pa.list_(pa.int32()))
    pyarrow.parquet.write_table(pa.table({"input_ids": column}), tmp_path / "t.parquet")
    table = feedline.open(tmp_path / "t.parquet", fields="input_ids")
    with table.pack_sequences(32).loader(2, **options) as loader:
        assert epoch_of(loader) == expected


def test_subsets_and_mixtures(tmp_path: Path) -> None:
    dataset = written(tmp_path, [4, 6, 3, 5])
    with dataset.subset([3, 0]).pack_sequences(10).loader(1, output="numpy") as loader:
        assert epoch_of(loader) == [[((13, 14, 15, 16, 17), (0, 1, 2, 3))]]
    mixed = feedline.mix([dataset, dataset.subset([1])], weights=[1, 1])
    counts = mixed.pack_sequences(10).count()
    assert counts["documents"] == len(mixed)


def test_torch_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    packed = written(tmp_path, [7, 4, 9]).pack_sequences(16)
    with packed.loader(2) as loader:
        (batch,) = loader
    for name in ("input_ids", "labels", "position_ids", "document_ids"):
        assert getattr(batch, name).dtype == torch.int64
        assert getattr(batch, name).shape == (2, 16)
    assert batch.cu_seqlens.dtype == torch.int32
    assert batch.cu_seqlens.tolist() == np.cumsum([0, *np.diff(batch.cu_seqlens.numpy())]).tolist()
    assert int(batch.cu_seqlens[-1]) == 32
    assert type(batch.max_seqlen) is int


def test_a_token_outside_the_vocabulary(tmp_path: Path) -> None:
    packed = written(tmp_path, [7, 4, 9]).pack_sequences(16, vocabulary=15)
    loader = packed.loader(1, output="numpy")
    with loader, pytest.raises(feedline.DataError, match=r"token at position 4 is 15, but vocabulary=15") as raised:
        list(loader)
    assert raised.value.key == "sequence 2"
    assert raised.value.record == 2
    assert raised.value.shard == str(tmp_path / "tokens.bin")


def test_the_batch_after_a_bad_one_follows(tmp_path: Path) -> None:
    packed = written(tmp_path, [10, 10, 10]).pack_sequences(10, vocabulary=20)
    with packed.loader(1, output="numpy") as loader:
        iterator = iter(loader)
        assert rows_of(next(iterator)) == [(tuple(range(10)),)]
        assert rows_of(next(iterator)) == [(tuple(range(10, 20)),)]
        with pytest.raises(feedline.DataError):
            next(iterator)
        assert loader.state_dict()["position"] == 3
        assert next(iterator, None) is None


def labels_of(loader: Any) -> dict[int, int]:
    """The label at each token; tokens are different numbers."""
    with loader:
        found = {}
        for batch in loader:
            for row in range(len(batch.input_ids)):
                used = batch.document_ids[row] >= 0
                found |= dict(zip(batch.input_ids[row, used].tolist(), batch.labels[row, used].tolist(), strict=True))
                assert (batch.labels[row, ~used] == -100).all()
    return found


def expected_labels(lengths: list[int], own: np.ndarray, labels: str, length: int) -> dict[int, int]:
    """`own`: the label of each token as the token that is predicted, or -100."""
    expected = {}
    for begin, end in itertools.pairwise(np.cumsum([0, *lengths]).tolist()):
        for token in range(begin, end):
            if labels == "next_token":
                expected[token] = int(own[token + 1]) if token + 1 < end else -100
            else:
                expected[token] = -100 if (token - begin) % length == 0 else int(own[token])
    return expected


@pytest.mark.parametrize("labels", ["input_ids", "next_token"])
@pytest.mark.parametrize("dtype", [bool, np.int8])
@pytest.mark.parametrize("stored", ["memory", "parquet", "arrow"])
def test_loss_masks_and_labels_of_the_dataset(tmp_path: Path, stored: str, dtype: Any, labels: Any) -> None:
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 40, 60).tolist()  # some are split
    tokens = np.arange(sum(lengths), dtype=np.int32)
    mask = rng.integers(0, 2, len(tokens)).astype(dtype)
    other = np.where(rng.integers(0, 4, len(tokens)) == 0, -100, tokens + 1000).astype(np.int32)
    masked = {"input_ids": tokens, "loss_mask": mask}
    for columns, own in (
        (masked, np.where(mask, tokens, -100)),
        ({"labels": other, "input_ids": tokens}, other),
        ({"labels": other, **masked}, np.where(mask, other, -100)),
    ):
        if stored == "memory":
            dataset = feedline.arrays(**{name: feedline.ragged(values, lengths) for name, values in columns.items()})
        else:
            dataset = table_of(tmp_path / f"t.{stored}", columns, lengths)
        loader = dataset.pack_sequences(24, labels=labels).loader(2, shuffle=True, output="numpy", uneven="exact")
        assert labels_of(loader) == expected_labels(lengths, own, labels, 24)


def table_of(path: Path, columns: dict[str, np.ndarray], lengths: list[int]) -> feedline.Dataset:
    """Writes lists of these lengths."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    ends = np.cumsum([0, *lengths], dtype=np.int32)
    table = pa.table({name: pa.ListArray.from_arrays(ends, pa.array(values)) for name, values in columns.items()})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return feedline.open(path, fields=[*columns])


def test_a_tokenized_chat_is_packed_with_its_loss_mask(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet
    from made_tokenizers import CHATML, Bytes, text_of

    talks = [
        [{"role": "user", "content": "?" * n}, {"role": "assistant", "content": "!" * (n + 1)}] for n in range(1, 9)
    ]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks))
    chats = feedline.open(tmp_path / "chat.jsonl", fields=["messages"])
    train = chats.tokenize(Bytes(), messages="messages", chat_template=CHATML)
    samples = [train[i] for i in range(len(train))]
    table = {name: [getattr(sample, name) for sample in samples] for name in ("input_ids", "loss_mask")}
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    stored = feedline.open(tmp_path / "t.parquet", fields=["input_ids", "loss_mask"])
    with stored.pack_sequences(512).loader(1, output="numpy") as loader:
        (batch,) = loader
    trained = batch.labels[0][batch.labels[0] != -100].tolist()
    assert text_of(trained) == "".join("!" * (n + 1) + "<|im_end|>" for n in range(1, 9))


def test_fields_of_different_lengths(tmp_path: Path) -> None:
    tokens, mask = feedline.ragged(np.arange(6), [1, 3, 2]), feedline.ragged(np.ones(6, bool), [1, 2, 3])
    with pytest.raises(feedline.DataError, match="'loss_mask' has 2 values, but 'input_ids' has 3 tokens") as raised:
        feedline.arrays(input_ids=tokens, loss_mask=mask).pack_sequences(8)
    assert raised.value.record == 1
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = pa.table({"input_ids": [[0], [1, 2, 3]], "labels": [[0], [1, 2]]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    dataset = feedline.open(tmp_path / "t.parquet", fields=["input_ids", "labels"])
    with pytest.raises(feedline.DataError, match="'labels' has 2 values, but 'input_ids' has 3 tokens") as raised:
        dataset.pack_sequences(8)
    assert raised.value.record == 1


def test_input_ids_are_packed_if_there_are_several_lists() -> None:
    tokens, ones = feedline.ragged(np.arange(4), [1, 3]), feedline.ragged(np.ones(4, int), [1, 3])
    dataset = feedline.arrays(attention_mask=ones, input_ids=tokens)
    with dataset.pack_sequences(8).loader(1, output="numpy") as loader:
        assert epoch_of(loader) == [[((0,), (1, 2, 3))]]


def test_refusals(tmp_path: Path) -> None:
    dataset = written(tmp_path, [7, 4, 9])
    for options, text in [
        ({"length": 1}, "length must be from 2"),
        ({"method": "first_fit"}, "method must be one of"),
        ({"method": "concat", "long": "drop"}, 'pass long="split"'),
        ({"window": 0}, "window must be from 1"),
        ({"labels": "shifted"}, "labels must be one of"),
        ({"field": "text"}, "does not have the field 'text'; its fields are tokens"),
        ({"field": "tokens_length"}, "'tokens_length' does not contain lists of integers"),
        ({"pad": 9, "vocabulary": 9}, "pad=9 is outside the vocabulary of 9"),
    ]:
        with pytest.raises(feedline.ConfigError, match=text):
            dataset.pack_sequences(**options)
    with pytest.raises(feedline.ConfigError, match=r"no field of .* has lists of integers"):
        feedline.arrays(x=np.zeros((3, 4))).pack_sequences()
    classes = feedline.arrays(input_ids=feedline.ragged(np.arange(4), [1, 3]), labels=np.arange(2))
    with pytest.raises(feedline.ConfigError, match="'labels' does not have a list of integers for each sample"):
        classes.pack_sequences()
    with pytest.raises(feedline.ConfigError, match=r"has 2\^31 tokens or more"):
        dataset.pack_sequences(2**20).loader(2048)


def test_a_state_of_other_packs_is_refused(tmp_path: Path) -> None:
    dataset = written(tmp_path, [7, 4, 9])
    with dataset.pack_sequences(16).loader(1, output="numpy") as loader:
        state = loader.state_dict()
    for other in (
        dataset.pack_sequences(32),
        dataset.pack_sequences(16, window=2),
        dataset.pack_sequences(16, "concat"),
    ):
        with other.loader(1, output="numpy") as loader, pytest.raises(feedline.ConfigError, match="packed"):
            loader.load_state_dict(state)
    shuffled = dataset.pack_sequences(16).loader(1, output="numpy", shuffle=True)
    with shuffled as loader, pytest.raises(feedline.ConfigError, match="shuffle=False"):
        loader.load_state_dict(state)
