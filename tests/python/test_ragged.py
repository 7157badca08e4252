# SPDX-License-Identifier: Apache-2.0
"""Samples of different lengths: ragged arrays and token documents, padded to the longest in a batch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feedline

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float64"]


def samples_of(lengths: list[int], columns: tuple[int, ...] = ()) -> list[numpy.ndarray]:
    """All values of sample i are i, except in its first row."""
    made = [numpy.full((length, *columns), i, dtype="int32") for i, length in enumerate(lengths)]
    for sample in made:
        sample[0] = 999
    return made


def numbered(lengths: list[int], **options) -> feedline.Dataset:
    return feedline.arrays(
        text=feedline.ragged(samples_of(lengths), **options), label=numpy.arange(len(lengths), dtype="int32")
    )


# -- ragged arrays


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=40),
    columns=st.sampled_from([(), (3,), (2, 2)]),
    batch_size=st.integers(1, 12),
    threads=st.integers(1, 3),
    shuffle=st.booleans(),
)
def test_a_batch_is_its_samples_padded_to_the_longest(lengths, columns, batch_size, threads, shuffle):
    samples = samples_of(lengths, columns)
    data = feedline.arrays(text=feedline.ragged(samples, pad_value=-5), label=numpy.arange(len(lengths)))
    seen = []
    for batch in data.loader(batch_size, shuffle=shuffle, seed=3, num_workers=threads, output="numpy"):
        assert batch.text.shape == (len(batch.label), max(lengths[i] for i in batch.label), *columns)
        for row, length, label in zip(batch.text, batch.text_length, batch.label, strict=True):
            assert length == lengths[label]
            numpy.testing.assert_array_equal(row[:length], samples[label])
            assert (row[length:] == -5).all()
        seen += batch.label.tolist()
    assert sorted(seen) == list(range(len(lengths)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_padded_with_its_own_number(dtype):
    values = numpy.arange(10).astype(dtype)
    pad = 1 if dtype == "bool" else 3
    (batch,) = feedline.arrays(a=feedline.ragged(values, [2, 7, 1], pad_value=pad)).loader(3, output="numpy")
    assert batch.a.dtype == values.dtype
    expected = numpy.full((3, 7), pad, dtype=dtype)
    expected[0, :2], expected[1], expected[2, :1] = values[:2], values[2:9], values[9:]
    numpy.testing.assert_array_equal(batch.a, expected)


def test_lengths_offsets_and_a_list_agree():
    values = numpy.arange(10)
    ways = [
        feedline.ragged(values, [3, 1, 6]),
        feedline.ragged(values, lengths=numpy.array([3, 1, 6], dtype="uint8")),
        feedline.ragged(values, offsets=[0, 3, 4, 10]),
        feedline.ragged([values[:3], values[3:4], values[4:]]),
        feedline.ragged([[0, 1, 2], [3], [4, 5, 6, 7, 8, 9]]),
    ]
    for way in ways:
        data = feedline.arrays(a=way)
        assert [sample.a.tolist() for sample in data] == [[0, 1, 2], [3], [4, 5, 6, 7, 8, 9]]
        assert [sample.a_length for sample in data] == [3, 1, 6]
        assert data.fingerprint == feedline.arrays(a=ways[0]).fingerprint


def test_torch_tensors_are_ragged_too():
    torch = pytest.importorskip("torch")
    values = torch.arange(12, dtype=torch.float32).reshape(6, 2)
    for ragged in (
        feedline.ragged(values, torch.tensor([1, 3, 2])),
        feedline.ragged(list(values.split([1, 3, 2]))),
    ):
        (batch,) = feedline.arrays(a=ragged).loader(3)
        expected = torch.nn.utils.rnn.pad_sequence(list(values.split([1, 3, 2])), batch_first=True)
        assert torch.equal(batch.a, expected)
        assert batch.a_length.tolist() == [1, 3, 2]


def test_values_are_not_copied_and_offsets_are():
    values, offsets = numpy.zeros(6), numpy.array([0, 2, 6])
    data = feedline.arrays(a=feedline.ragged(values, offsets=offsets))
    values[:], offsets[:] = 1, 9
    assert [sample.a.tolist() for sample in data] == [[1, 1], [1, 1, 1, 1]]


def test_two_ragged_fields_have_lengths_of_their_own():
    data = feedline.arrays(a=feedline.ragged([[1], [2, 2]]), b=feedline.ragged([[3, 3, 3], [4]], pad_value=9))
    (batch,) = data.loader(2, output="numpy")
    assert batch._fields == ("a", "a_length", "b", "b_length")
    assert batch.a.tolist() == [[1, 0], [2, 2]]
    assert batch.b.tolist() == [[3, 3, 3], [4, 9, 9]]
    assert batch.b_length.tolist() == [3, 1]


def test_the_schema_leaves_the_extent_open():
    data = feedline.arrays(a=feedline.ragged(numpy.zeros((5, 4), dtype="float32"), [2, 3]))
    assert data.schema["a"] == feedline.FieldSpec((-1, 4), "float32")
    assert data.schema["a_length"] == feedline.FieldSpec((), "int64")
    assert "(-1, 4)" in data.loader(2, output="numpy").explain()


def test_resuming_at_every_batch_gives_the_rest():
    lengths = numpy.random.default_rng(0).integers(1, 30, 53).tolist()
    options = {"batch_size": 5, "shuffle": True, "seed": 4, "output": "numpy"}
    whole = [batch.text.tobytes() for batch in numbered(lengths).loader(num_workers=2, **options)]
    loader = numbered(lengths).loader(num_workers=2, **options)
    for done, _batch in enumerate(loader, start=1):
        resumed = numbered(lengths).loader(num_workers=1, **options)
        resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        if done < len(whole):
            assert [batch.text.tobytes() for batch in resumed] == whole[done:]


def test_a_state_of_other_lengths_is_refused():
    values = numpy.zeros(10)
    loader = feedline.arrays(a=feedline.ragged(values, [4, 6])).loader(1, output="numpy")
    other = feedline.arrays(a=feedline.ragged(values, [5, 5])).loader(1, output="numpy")
    with pytest.raises(feedline.ConfigError, match="another dataset"):
        other.load_state_dict(loader.state_dict())


def test_memory_is_planned_for_the_longest_sample():
    data = numbered([1] * 99 + [100_000])
    data.loader(10, memory_budget="5 MB", output="numpy")
    with pytest.raises(feedline.ConfigError, match="one batch needs 4000"):
        data.loader(10, memory_budget="3 MB", output="numpy")


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_samples_of_different_lengths_replace_nothing(on_error):
    with pytest.raises(feedline.ConfigError, match=f'on_error="{on_error}" does not support'):
        numbered([1, 2]).loader(2, on_error=on_error, output="numpy")


VALUES = numpy.arange(10)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((VALUES,), {}, "either lengths or offsets"),
        ((VALUES, [10]), {"offsets": [0, 10]}, "either lengths or offsets"),
        (([VALUES], [10]), {}, "defines the lengths"),
        (([],), {}, "list of arrays is empty"),
        (([VALUES, 3],), {}, "sample 1 is not an array"),
        (([VALUES, VALUES.astype("int8")],), {}, "sample 1 is int8"),
        (([VALUES, VALUES.reshape(5, 2)],), {}, r"of shape \(5, 2\)"),
        ((VALUES, [4, -1, 7]), {}, "sample 1 has the negative length -1"),
        ((VALUES, [4, 5]), {}, "lengths sum to 9, but there are 10 rows"),
        ((VALUES, [4.0, 6.0]), {}, "lengths must be a one-dimensional array of integers"),
        ((VALUES, [[4, 6]]), {}, "one-dimensional"),
        ((VALUES, [4, 0, 6]), {}, 'sample 1 of "a" is empty'),
        ((VALUES, []), {}, "lengths sum to 0"),
        ((numpy.zeros(0), []), {}, "no rows"),
        ((VALUES,), {"offsets": []}, "offsets is empty"),
        ((VALUES,), {"offsets": [0, 6, 4, 10]}, "do not ascend"),
        ((VALUES,), {"offsets": [0, 6]}, "end at 6, but there are 10 rows"),
        ((VALUES,), {"offsets": [2, 10]}, "begin at 2"),
        ((VALUES, [10]), {"pad_value": 2**70}, "pad_value of int64"),
        ((VALUES.astype("uint16"), [10]), {"pad_value": -1}, "pad_value of uint16 must be from 0 to 65535"),
        ((VALUES.astype("float32"), [10]), {"pad_value": "x"}, "pad_value must be a number"),
        ((VALUES > 3, [10]), {"pad_value": 2}, "True or False"),
        ((VALUES[::2], [5]), {}, "are not contiguous"),
        (("text", [4]), {}, "must be a NumPy array"),
        ((numpy.zeros((10, 0)), [10]), {}, "no elements"),
        ((numpy.zeros((4, 1, 1, 1, 1, 1)), [4]), {}, "dimensions"),
    ],
)
def test_what_is_no_ragged_array_is_refused_by_name(arguments, options, words):
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.arrays(a=feedline.ragged(*arguments, **options))


def test_a_field_may_not_be_called_like_a_length():
    with pytest.raises(feedline.ConfigError, match='"a_length" is used twice'):
        feedline.arrays(a=feedline.ragged(VALUES, [10]), a_length=numpy.zeros(1))


# -- documents


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Documents of 1, 3, 9, 2 and 1 tokens, each followed by a separator, 0, and 4 tokens without one."""
    path = tmp_path / "documents.bin"
    tokens = []
    for count in (1, 3, 9, 2, 1):
        tokens += [*range(10 * count + 1, 11 * count + 1), 0]
    numpy.array([0, *tokens, 1, 2, 3, 4], dtype="<u2").tofile(path)
    return path


def test_packed_windows_know_their_documents(documents):
    plain = feedline.tokens(documents, window=5, dtype="uint16")
    packed = feedline.tokens(documents, window=5, dtype="uint16", separator=0)
    assert list(packed.schema) == ["x", "y", "document"]
    assert packed.schema["document"] == feedline.FieldSpec((5,), "int32")
    for without, sample in zip(plain, packed, strict=True):
        numpy.testing.assert_array_equal(sample.x, without.x)
        numpy.testing.assert_array_equal(sample.y, numpy.where(without.x == 0, -100, without.y))
        numpy.testing.assert_array_equal(sample.document, numpy.cumsum([0, *(sample.x == 0)])[:-1])


def test_no_sample_crosses_a_document(documents):
    data = feedline.tokens(documents, window=4, dtype="uint16", separator=0, documents="apart", pad=7)
    stored = numpy.fromfile(documents, dtype="uint16").tolist()
    rebuilt: list[int] = []
    for sample in data:
        assert len(sample.x) == len(sample.y) == sample.length <= 4
        assert 0 not in sample.x  # a separator is predicted, but predicts nothing
        rebuilt += [sample.x[0], *sample.y] if not rebuilt or rebuilt[-1] != sample.x[0] else sample.y.tolist()
    assert [0, *rebuilt] == stored  # only the first separator, which has no neighbour, is omitted
    assert "6 documents in 8 samples; omitted 1 with fewer than 2 tokens" in data.explain()
    (batch,) = data.loader(len(data), output="numpy")
    assert batch.x.shape == (8, 4)
    for x, y, length in zip(batch.x, batch.y, batch.length, strict=True):
        assert (x[length:] == 7).all() and (y[length:] == -100).all()
        numpy.testing.assert_array_equal(x[1:length], y[: length - 1])


def test_short_documents_are_left_out_and_counted(documents):
    data = feedline.tokens(
        documents, window=20, dtype="uint16", separator=0, documents="apart", min_length=4, output_dtype="int32"
    )
    assert [len(sample.x) for sample in data] == [3, 9, 3]
    assert data[0].x.dtype == numpy.int32
    assert "3 documents in 3 samples; omitted 4 with fewer than 4 tokens" in data.explain()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_documents_are_cut_as_a_few_lines_of_python_cut_them(data, tmp_path_factory):
    window, stride = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 12))
    files = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=60), min_size=1, max_size=3))
    expected = []
    for tokens in files:
        documents, rest = [], []
        for token in tokens:
            rest.append(token)
            if token == 0:
                documents.append(rest)
                rest = []
        for document in [*documents, rest]:
            for begin in range(0, len(document), stride):
                piece = document[begin : begin + window + 1]
                if len(piece) > 1:
                    expected.append((piece[:-1], piece[1:]))
                if begin + window + 1 >= len(document):
                    break
    folder = tmp_path_factory.mktemp("tokens")
    paths = [folder / f"{number}.bin" for number in range(len(files))]
    for path, tokens in zip(paths, files, strict=True):
        numpy.array(tokens, dtype="uint8").tofile(path)
    options = {"window": window, "stride": stride, "dtype": "uint8", "separator": 0, "documents": "apart"}
    if not any(0 in tokens for tokens in files) or not expected:
        with pytest.raises(feedline.ConfigError, match=r"separator 0 is not among|no document has 2 tokens"):
            feedline.tokens(paths, **options)
        return
    found = [(sample.x.tolist(), sample.y.tolist()) for sample in feedline.tokens(paths, **options)]
    assert found == expected


def test_cross_entropy_leaves_the_padding_out(documents):
    torch = pytest.importorskip("torch")
    data = feedline.tokens(documents, window=6, dtype="uint16", separator=0, documents="apart")
    (batch,) = data.loader(len(data))
    logits = torch.randn(*batch.x.shape, 120)
    together = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.y.flatten(), reduction="sum")
    one_by_one = sum(
        torch.nn.functional.cross_entropy(logits[row, :length], batch.y[row, :length], reduction="sum")
        for row, length in enumerate(batch.length)
    )
    assert torch.allclose(together, one_by_one)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"documents": "apart"}, "documents requires separator"),
        ({"pad": 1}, "pad requires separator"),
        ({"min_length": 3}, "min_length requires separator"),
        ({"separator": 0, "documents": "mixed"}, "documents must be one of 'pack', 'apart'"),
        ({"separator": 0, "pad": 1}, 'pad and min_length require documents="apart"'),
        ({"separator": 65536}, "cannot be among tokens of dtype uint16"),
        ({"separator": -1}, "cannot be among tokens of dtype uint16"),
        ({"separator": 0.5}, "separator must be an integer"),
        ({"separator": 500, "vocabulary": 500}, "separator 500 is outside the vocabulary of 500"),
        ({"separator": 60000, "documents": "apart"}, "separator 60000 is not among the 26 tokens"),
        ({"separator": 400, "vocabulary": 500, "check": True}, "separator 400 is not among the 26 tokens"),
        ({"separator": 0, "documents": "apart", "min_length": 1}, "min_length must be from 2"),
        ({"separator": 0, "documents": "apart", "min_length": 50}, "no document has 50 tokens"),
        ({"separator": 0, "documents": "apart", "pad": 2**31, "output_dtype": "int32"}, "pad 2147483648 cannot"),
    ],
)
def test_wrong_documents_are_refused_by_name(documents, options, words):
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.tokens(documents, window=5, dtype="uint16", **options)


def test_a_token_outside_the_vocabulary_is_found_while_documents_are_looked_for(documents):
    options = {"separator": 0, "documents": "apart", "dtype": "uint16", "window": 5}
    feedline.tokens(documents, vocabulary=100, check=True, **options)
    with pytest.raises(feedline.DataError, match="position 7 has token 91, but the vocabulary size is 91"):
        feedline.tokens(documents, vocabulary=91, check=True, **options)


def test_ragged_datasets_mix():
    short, long = numbered([1, 2, 3], pad_value=8), numbered([5, 9], pad_value=9)
    (batch,) = feedline.mix([short, long]).loader(5, output="numpy")
    assert batch.text.shape == (5, 9)
    assert sorted(batch.text_length) == [1, 2, 3, 5, 9]
    for row, length in zip(batch.text, batch.text_length, strict=True):
        assert (row[length:] == (8 if length < 5 else 9)).all()
