# SPDX-License-Identifier: Apache-2.0
"""feedline.arrays and feedline.tokens: the same loader for rows and windows."""

from __future__ import annotations

import json
import weakref
from pathlib import Path

import numpy
import pytest

import feedline

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64"]


def rows(loader) -> list[int]:
    return [int(value) for batch in loader for value in batch.y]


def numbered(count: int) -> feedline.Dataset:
    return feedline.arrays(x=numpy.arange(3 * count).reshape(count, 3), y=numpy.arange(count))


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "train.bin"
    numpy.arange(1000, dtype="<u2").tofile(path)
    return path


# -- arrays


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_as_it_is(dtype):
    array = numpy.random.default_rng(0).integers(0, 2, (50, 3, 2)).astype(dtype)
    (batch, *_) = feedline.arrays(a=array).loader(7, output="numpy")
    assert batch.a.dtype == array.dtype
    numpy.testing.assert_array_equal(batch.a, array[:7])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_arrives_in_torch_and_from_torch(dtype):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(60).reshape(20, 3).to(getattr(torch, dtype))
    (batch, *_) = feedline.arrays(a=tensor).loader(4)
    assert batch.a.dtype == tensor.dtype
    assert torch.equal(batch.a, tensor[:4])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 7, 100])
def test_an_epoch_has_every_row_once_and_fields_belong_together(threads, batch_size):
    seen = []
    for batch in numbered(1001).loader(batch_size, shuffle=True, seed=2, num_workers=threads, output="numpy"):
        numpy.testing.assert_array_equal(batch.x[:, 0], 3 * batch.y)
        seen += batch.y.tolist()
    assert seen != sorted(seen)
    assert sorted(seen) == list(range(1001))


def test_the_order_does_not_depend_on_threads():
    orders = [rows(numbered(500).loader(16, shuffle=True, seed=1, num_workers=n, output="numpy")) for n in (1, 2, 8)]
    assert orders[0] == orders[1] == orders[2]


def test_rows_may_be_apart_and_columns_may_not():
    wide = numpy.arange(60).reshape(10, 6)
    (batch,) = feedline.arrays(a=wide[::2, 1:4]).loader(5, output="numpy")
    numpy.testing.assert_array_equal(batch.a, wide[::2, 1:4])
    (batch,) = feedline.arrays(a=wide[::-1]).loader(10, output="numpy")
    numpy.testing.assert_array_equal(batch.a, wide[::-1])
    with pytest.raises(feedline.ConfigError, match="the elements of a row of a are not contiguous"):
        feedline.arrays(a=wide[:, ::2])


def test_a_mapped_file_is_an_array(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.arange(30.0).reshape(10, 3))
    mapped = numpy.load(tmp_path / "x.npy", mmap_mode="r")
    (batch,) = feedline.arrays(x=mapped).loader(10, output="numpy")
    numpy.testing.assert_array_equal(batch.x, mapped)


def test_the_source_is_not_copied_and_batches_are_not_the_source():
    array = numpy.zeros((4, 2))
    data = feedline.arrays(a=array)
    array[:] = 1
    (batch,) = data.loader(4, output="numpy")
    assert (batch.a == 1).all()
    batch.a[:] = 5
    assert (array == 1).all()


def test_arrays_live_as_long_as_a_loader_needs_them():
    array = numpy.arange(10)
    gone = weakref.ref(array)
    loader = feedline.arrays(y=array).loader(3, output="numpy")
    del array
    assert gone() is not None
    assert rows(loader) == list(range(10))
    loader.close()
    del loader
    assert gone() is None


def test_resuming_at_every_batch_gives_the_rest():
    options = {"shuffle": True, "seed": 4, "output": "numpy"}
    whole = rows(numbered(53).loader(5, num_workers=2, **options))
    loader = numbered(53).loader(5, num_workers=2, **options)
    done = []
    for batch in loader:
        done += batch.y.tolist()
        resumed = numbered(53).loader(5, num_workers=1, **options)
        resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        if len(done) < 53:
            assert done + rows(resumed) == whole


def test_a_state_of_other_arrays_is_refused():
    loader = numbered(50).loader(5, output="numpy")
    with pytest.raises(feedline.ConfigError, match="another dataset"):
        numbered(51).loader(5, output="numpy").load_state_dict(loader.state_dict())


def test_ranks_share_the_rows():
    seen = []
    for rank in range(3):
        seen += rows(numbered(20).loader(2, rank=rank, world_size=3, uneven="exact", output="numpy", shuffle=True))
    assert sorted(seen) == list(range(20))


def test_one_row_is_a_sample():
    sample = numbered(5)[3]
    assert sample.x.tolist() == [9, 10, 11]
    assert sample.y == 3


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "at least one array"),
        ({"a": [1, 2]}, "must be a NumPy array or a torch tensor, not list"),
        ({"a": numpy.array(5)}, "a is a single number"),
        ({"a": numpy.zeros((3, 2)), "b": numpy.zeros(4)}, '"b" has 4 rows, "a" has 3'),
        ({"a": numpy.zeros((0, 2))}, "no rows"),
        ({"a": numpy.zeros((3, 0))}, "no elements"),
        ({"a": numpy.zeros(3, dtype=">f4")}, "not in this machine.s byte order"),
        ({"a": numpy.zeros(3, dtype="complex64")}, "complex64"),
        ({"a": numpy.array(["x", "y"])}, "dtype"),
    ],
)
def test_what_is_no_set_of_arrays_is_refused_by_name(fields, words):
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.arrays(**fields)


def test_operations_are_for_images():
    with pytest.raises(feedline.ConfigError, match='center_crop: the samples of "arrays" are arrays'):
        numbered(4).center_crop(2).loader(2)
    with pytest.raises(feedline.ConfigError, match="dtype needs images"):
        numbered(4).loader(2, dtype="float16")


# -- tokens


def test_y_is_x_one_token_later(token_file):
    data = feedline.tokens(token_file, window=100, dtype="uint16")
    assert len(data) == 9  # 999 targets
    for number, batch in enumerate(data.loader(1, output="numpy")):
        numpy.testing.assert_array_equal(batch.x[0], numpy.arange(100 * number, 100 * number + 100))
        numpy.testing.assert_array_equal(batch.y, batch.x + 1)
        assert batch.x.dtype == batch.y.dtype == numpy.int64


def test_windows_may_overlap_and_be_int32(token_file):
    data = feedline.tokens(token_file, window=10, stride=1, dtype="uint16", output_dtype="int32")
    assert len(data) == 990
    starts = sorted(int(batch.x[0, 0]) for batch in data.loader(1, shuffle=True, output="numpy"))
    assert starts == list(range(990))
    assert data.schema["x"].dtype == "int32"


def test_a_npy_file_reports_what_it_holds(tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.arange(50, dtype="int32"))
    numpy.save(tmp_path / "b.npy", numpy.arange(100, 140, dtype="int32"))
    data = feedline.tokens([tmp_path / "a.npy", tmp_path / "b.npy"], window=20)
    assert [sample.x[0] for sample in data] == [0, 20, 100]
    with pytest.raises(feedline.ConfigError, match="contains int32, not uint16"):
        feedline.tokens(tmp_path / "a.npy", window=20, dtype="uint16")
    numpy.save(tmp_path / "square.npy", numpy.zeros((3, 3), dtype="int32"))
    with pytest.raises(feedline.ConfigError, match=r"shape \(3, 3\)"):
        feedline.tokens(tmp_path / "square.npy", window=2)


def test_tokens_resume_on_other_ranks(token_file):
    def loader(rank, world):
        data = feedline.tokens(token_file, window=7, dtype="uint16")
        options = {"shuffle": True, "seed": 9, "output": "numpy"}
        return data.loader(12 // world, rank=rank, world_size=world, uneven="drop", drop_last=True, **options)

    def starts(batch):
        return batch.x[:, 0].tolist()

    whole = [starts(batch) for batch in loader(0, 1)]
    halves = [loader(rank, 2) for rank in range(2)]
    iterators = [iter(half) for half in halves]
    for step in range(3):
        assert [start for iterator in iterators for start in starts(next(iterator))] == whole[step]
    state = halves[1].state_dict()
    thirds = [loader(rank, 3) for rank in range(3)]
    for third in thirds:
        third.load_state_dict(state)
    rest = [[start for batch in batches for start in starts(batch)] for batches in zip(*thirds, strict=True)]
    assert rest == whole[3:]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 10}, "does not specify a dtype"),
        ({"window": 0, "dtype": "uint16"}, "window"),
        ({"window": -3, "dtype": "uint16"}, "window"),
        ({"window": 2.5, "dtype": "uint16"}, "window"),
        ({"window": 10, "stride": 0, "dtype": "uint16"}, "stride"),
        ({"window": 10, "dtype": "float32"}, "float32 tokens"),
        ({"window": 10, "dtype": "uint16", "output_dtype": "int16"}, "as int16"),
        ({"window": 1000, "dtype": "uint16"}, "1001 tokens that a window and its targets need"),
        ({"window": 10, "dtype": "uint16", "check": True}, "requires vocabulary"),
    ],
)
def test_wrong_arguments_are_refused_by_name(token_file, options, words):
    with pytest.raises(feedline.ConfigError, match=words):
        feedline.tokens(token_file, **options)


def test_a_file_of_half_tokens_is_refused(tmp_path):
    (tmp_path / "odd.bin").write_bytes(bytes(101))
    with pytest.raises(feedline.ConfigError, match=r"101 bytes are not a multiple of 2, .*odd\.bin"):
        feedline.tokens(tmp_path / "odd.bin", window=4, dtype="uint16")


def test_a_token_outside_the_vocabulary_is_found_before_training(token_file):
    feedline.tokens(token_file, window=4, dtype="uint16", vocabulary=1000, check=True)
    feedline.tokens(token_file, window=4, dtype="uint16", vocabulary=10)  # not requested to check
    with pytest.raises(feedline.DataError, match="900 has token 900, but the vocabulary size is 900") as caught:
        feedline.tokens(token_file, window=4, dtype="uint16", vocabulary=900, check=True)
    assert caught.value.offset == 1800


def test_a_missing_file_is_a_storage_error(tmp_path):
    for name in ("none.bin", "none.npy"):
        with pytest.raises(feedline.StorageError, match=name):
            feedline.tokens(tmp_path / name, window=4, dtype="uint16")


def test_tokens_that_fit_into_memory_stay_there_and_are_the_same(token_file):
    def batches(memory):
        tokens = feedline.tokens(token_file, window=30, stride=7, dtype="uint16", memory=memory)
        loader = tokens.loader(4, shuffle=True, seed=3, output="numpy")
        epochs = [[batch.x.tolist() for batch in loader] for _ in range(2)]
        return epochs, "stay in memory" in loader.explain()

    read, held, fits, too_large = (batches(memory) for memory in (0, None, 2000, 1999))
    assert held[0] == read[0] == fits[0] == too_large[0]
    assert [is_held for _, is_held in (read, held, fits, too_large)] == [False, True, True, False]
    with pytest.raises(feedline.ConfigError, match="memory"):
        feedline.tokens(token_file, window=30, dtype="uint16", memory=-1)
