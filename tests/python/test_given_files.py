# SPDX-License-Identifier: Apache-2.0
"""The engine with files, orders and draws from the caller, as used by feedline.DataLoader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy
import pytest

import feedline
from feedline import _engine
from feedline.data.dataset import Dataset


@pytest.fixture
def paths(folder: Path) -> list[bytes]:
    return [os.fsencode(path) for path in sorted(folder.rglob("*")) if path.is_file()]


def transformed(files: _engine.GivenFiles) -> Dataset:
    return Dataset(files.dataset, ("given", "files", [], "")).random_resized_crop(32).random_horizontal_flip()


def given_loader(files: _engine.GivenFiles, batch_size: int) -> _engine.Loader:
    return _engine.make_given_loader(
        transformed(files)._engine, {"batch_size": batch_size, "seed": 3, "num_workers": 2}
    )


def test_files_given_one_by_one_are_those_of_the_folder(folder, paths):
    whole = feedline.open(folder).random_resized_crop(32).random_horizontal_flip()
    files = _engine.GivenFiles("given")
    loader = given_loader(files, 8)
    loader.set_epoch(4)
    loader.start_epoch()
    order = [5, 0, 17, 5, 20]
    first = files.add([paths[i] for i in order])
    loader.give(list(range(first, first + len(order))), order)
    loader.end_giving()
    batch = loader.next()
    assert batch is not None and batch.bad == []
    for row, index in zip(batch.to_numpy()[0], order, strict=True):
        numpy.testing.assert_array_equal(row, whole.sample(index, seed=3, epoch=4)[0])
    assert loader.next() is None
    loader.close()


def test_rows_that_cannot_be_read_are_reported_and_the_others_are_there(paths, tmp_path):
    files = _engine.GivenFiles("given")
    loader = given_loader(files, 4)
    loader.start_epoch()
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"this is text")
    first = files.add([paths[0], os.fsencode(bad), paths[1], os.fsencode(tmp_path / "missing.jpg")])
    loader.give([first, first + 1, first + 2, first + 3], [0, 1, 2, 3])
    batch = loader.next()
    assert batch is not None
    assert [row for row, _ in batch.bad] == [1, 3]
    assert str(bad) in str(batch.bad[0][1])
    assert isinstance(batch.bad[0][1], feedline.DataError)
    assert isinstance(batch.bad[1][1], feedline.StorageError)
    loader.close()


def test_a_file_that_was_forgotten_is_an_error_and_not_another_file(paths):
    files = _engine.GivenFiles("given")
    reader = transformed(files)._engine.reader("NCHW")
    first, second = files.add(paths[:2]), files.add(paths[2:4])
    files.forget(first)
    with pytest.raises(feedline.DataError, match=f"file {first} was not added or was removed"):
        reader.read(first, 0, 0, 0)
    assert reader.read(second, 0, 0, 0)[0][1].shape == (3, 32, 32)


def test_as_many_draws_as_samples(paths):
    files = _engine.GivenFiles("given")
    loader = given_loader(files, 4)
    loader.start_epoch()
    with pytest.raises(feedline.ConfigError, match="number of draws must equal the number of indices"):
        loader.give([files.add(paths[:1])], [])
    loader.close()


def test_a_reader_takes_bytes_as_it_takes_files_and_draws_as_instructed(paths):
    files = _engine.GivenFiles("given")
    reader = transformed(files)._engine.reader("NHWC")
    first = files.add(paths[:1])
    data = Path(os.fsdecode(paths[0])).read_bytes()
    ((name, from_file),) = reader.read(first, 7, 1, 2)
    ((_, from_bytes),) = reader.read_encoded(data, 7, 1, 2)
    ((_, other_draw),) = reader.read_encoded(data, 8, 1, 2)
    assert name == "image" and from_file.shape == (32, 32, 3)
    numpy.testing.assert_array_equal(from_file, from_bytes)
    assert (from_bytes != other_draw).any()
    with pytest.raises(feedline.DataError):
        reader.read_encoded(data[:50], 0, 0, 0)


def test_a_reader_of_samples_with_labels_takes_no_bytes(folder):
    reader = feedline.open(folder).random_resized_crop(32)._engine.reader("NCHW")
    with pytest.raises(feedline.ConfigError, match="more than one image"):
        reader.read_encoded(b"", 0, 0, 0)


def test_a_reader_takes_pixels_as_it_takes_the_file_they_come_from(paths):
    files = _engine.GivenFiles("given")
    reader = transformed(files)._engine.reader("NHWC")
    first = files.add(paths[:1])
    pixels = feedline.decode_image(Path(os.fsdecode(paths[0])).read_bytes())
    ((_, from_file),) = reader.read(first, 7, 1, 2)
    ((name, from_pixels),) = reader.read_pixels(pixels, 7, 1, 2)
    ((_, other_draw),) = reader.read_pixels(pixels, 8, 1, 2)
    assert name == "image"
    numpy.testing.assert_array_equal(from_file, from_pixels)
    assert (from_pixels != other_draw).any()
    gray = numpy.ascontiguousarray(pixels[..., :1])
    ((_, of_gray),) = reader.read_pixels(gray, 7, 1, 2)
    ((_, of_copies),) = reader.read_pixels(numpy.repeat(gray, 3, axis=2), 7, 1, 2)
    numpy.testing.assert_array_equal(of_gray, of_copies)
    for wrong in (pixels[:0], pixels[..., :2].copy(), numpy.zeros((3, 3, 4), numpy.uint8)):
        with pytest.raises(feedline.ConfigError, match="an image needs pixels, and 1 or 3 channels"):
            reader.read_pixels(wrong, 0, 0, 0)


def test_a_reader_of_samples_with_labels_takes_no_pixels(folder):
    reader = feedline.open(folder).random_resized_crop(32)._engine.reader("NCHW")
    with pytest.raises(feedline.ConfigError, match="more than one image"):
        reader.read_pixels(numpy.zeros((9, 9, 3), numpy.uint8), 0, 0, 0)
