# SPDX-License-Identifier: Apache-2.0
"""Plugins: examples/cpp/plugin is built with the installed headers and used from Python; broken plugins are refused."""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import feedline

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cpp" / "plugin"
COMPILER = os.environ.get("CXX") or shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="no C++ compiler"),
    pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake on PATH"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("plugin")
    include = f"-DFEEDLINE_INCLUDE={feedline.include_folder()}"
    for command in (["-S", str(EXAMPLE), "-B", str(tree), include], ["--build", str(tree)]):
        done = subprocess.run(["cmake", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return tree / "example.so"


@pytest.fixture
def plugin(library: Path) -> feedline.Plugin:
    return feedline.load_plugin(library)


def compiled(folder: Path, body: str) -> Path:
    source, library = folder / "bad.cpp", folder / "bad.so"
    source.write_text('#include <stdexcept>\n#include "feedline/plugin/guard.h"\n' + body)
    command = [str(COMPILER), "-shared", "-fPIC", "-I", feedline.include_folder(), str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def raw8(pixels: np.ndarray) -> bytes:
    height, width, _ = pixels.shape
    return b"RAW8" + struct.pack("<HH", width, height) + pixels.tobytes()


def write_pairs(path: Path, count: int, offset: int = 0) -> list[np.ndarray]:
    images = [np.random.default_rng(i + offset).integers(0, 256, (6, 8, 3), np.uint8) for i in range(count)]
    stored = [raw8(image) for image in images]
    at, entries = 15 + 24 * count, b""
    for label, data in enumerate(stored):
        entries += struct.pack("<QQQ", at, len(data), label)
        at += len(data)
    path.write_bytes(b"PAIRS1\n" + struct.pack("<Q", count) + entries + b"".join(stored))
    return images


def test_names_are_returned_also_when_it_is_loaded_again(plugin: feedline.Plugin, library: Path) -> None:
    assert plugin == (str(library), ("example",), ("pairs",), ("raw8",), ("example_posterize", "example_halve"))
    assert feedline.load_plugin(str(library)) == plugin


def test_a_format_reads_several_files(plugin: feedline.Plugin, tmp_path: Path) -> None:
    images = write_pairs(tmp_path / "0.pairs", 3) + write_pairs(tmp_path / "1.pairs", 2, offset=3)
    for source in (tmp_path / "{0..1}.pairs", tmp_path, f"example://{tmp_path}/{{0..1}}.pairs"):
        dataset = feedline.open(source)
        assert len(dataset) == 5 and dataset.format == "pairs" and "read by a plugin" in dataset.explain()
        batches = list(dataset.loader(batch_size=2, output="numpy", layout="NHWC"))
        assert np.array_equal(np.concatenate([batch.image for batch in batches]), np.stack(images))
        assert np.concatenate([batch.label for batch in batches]).tolist() == [0, 1, 2, 0, 1]
    assert feedline.open(tmp_path, fields="target=label")[4].target == 1
    with pytest.raises(feedline.ConfigError, match="has no field 'mask'; its fields are image, label"):
        feedline.open(tmp_path, fields="mask")


def test_damage_is_an_error_with_its_place(plugin: feedline.Plugin, tmp_path: Path) -> None:
    path = tmp_path / "0.pairs"
    write_pairs(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(feedline.DataError, match="it is truncated or damaged"):
        feedline.open(path)[1]
    path.write_bytes(b"PAIRS2\n" + whole[7:])
    with pytest.raises(feedline.DataError, match="does not begin with PAIRS1"):
        feedline.open(path)


def test_a_codec_decodes_regions_and_grey(plugin: feedline.Plugin) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    data = raw8(pixels)
    assert feedline.image_info(data)[:3] == ("raw8", 7, 9)
    assert np.array_equal(feedline.decode_image(data), pixels)
    assert np.array_equal(feedline.decode_image(data, (2, 1, 4, 5)), pixels[1:6, 2:6])
    red, green, blue = (pixels[..., i].astype(int) for i in range(3))
    grey = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16
    assert np.array_equal(feedline.decode_image(data, mode="L")[..., 0], grey)
    with pytest.raises(feedline.DataError, match="truncated: rows are missing"):
        feedline.decode_image(data[:-1])


def test_a_storage_is_read_and_listed(plugin: feedline.Plugin, tmp_path: Path) -> None:
    (tmp_path / "cats").mkdir()
    pixels = np.zeros((4, 4, 3), np.uint8)
    (tmp_path / "cats" / "a.raw8").write_bytes(raw8(pixels))
    dataset = feedline.open(f"example://{tmp_path}/", format="folder")
    assert dataset.classes == ["cats"] and not dataset[0].image.any()
    with pytest.raises(feedline.StorageError, match="the file does not exist"):
        feedline.open(f"example://{tmp_path}/missing.pairs")


def test_operations_change_pixels_and_sizes(plugin: feedline.Plugin, tmp_path: Path) -> None:
    images = write_pairs(tmp_path / "0.pairs", 2)
    dataset = feedline.open(tmp_path / "0.pairs")
    coarse = dataset.apply("example_posterize", bits=2)
    assert np.array_equal(coarse[0].image.transpose(1, 2, 0), images[0] & 0xC0)
    assert "apply('example_posterize 1.0', bits=2)" in coarse.explain()
    halved = dataset.apply("example_halve").random_horizontal_flip(1.0)
    assert np.array_equal(halved[1].image.transpose(1, 2, 0), images[1][::2, ::2][:, ::-1])
    mirrored = dataset.random_horizontal_flip(1.0).apply("example_halve").center_crop(2)
    assert np.array_equal(mirrored[1].image.transpose(1, 2, 0), images[1][:, ::-1][::2, ::2][0:2, 1:3])


@pytest.mark.parametrize(
    ("operation", "given", "message"),
    [
        ("example_posterize", {"bits": 9}, "bits must be from 1 to 8"),
        ("example_posterize", {"levels": 2}, "has no argument 'levels'; its arguments are: bits"),
        ("no_such", {}, "no plugin has registered the operation 'no_such'"),
    ],
)
def test_wrong_arguments_are_refused_at_the_call(
    plugin: feedline.Plugin, tmp_path: Path, operation: str, given: dict[str, float], message: str
) -> None:
    write_pairs(tmp_path / "0.pairs", 1)
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.open(tmp_path / "0.pairs").apply(operation, **given)


def test_masks_cannot_follow_a_change_of_size(plugin: feedline.Plugin, tmp_path: Path) -> None:
    write_pairs(tmp_path / "0.pairs", 1)
    dataset = feedline.open(tmp_path / "0.pairs", fields=("image", "mask=image:mask"))
    with pytest.raises(feedline.ConfigError, match="a mask cannot follow"):
        dataset.apply("example_halve")[0]


def test_spawned_processes_load_the_plugin(plugin: feedline.Plugin, tmp_path: Path) -> None:
    write_pairs(tmp_path / "0.pairs", 2)
    dataset = feedline.open(f"example://{tmp_path}/0.pairs").apply("example_posterize", bits=3)
    program = "import pickle, sys; print(int(pickle.load(sys.stdin.buffer)[1].image.astype(int).sum()))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(dataset), capture_output=True, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) == int(dataset[1].image.astype(int).sum())


ADD = "return r->add_codec(r->host, &codec, m); }"
REGISTER = "int feedline_register_v1(const feedline_registry_v1* r, feedline_message* m) "
CODEC = """
static int header(void*, feedline_bytes, int* w, int* h, feedline_message*) { *w = *h = 1; return 0; }
static int decode(void*, feedline_bytes, uint8_t*, size_t, feedline_message*) { throw std::runtime_error("no"); }
static feedline_codec_v1 codec{sizeof codec, "NAME", "1", nullptr, nullptr, 0, {"MAGIC", 5}, header, decode};
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("int other() { return 1; }", r"it is not a plugin: the library does not export feedline_register_v1\(\)"),
        (
            'extern "C" FEEDLINE_PLUGIN_EXPORT int feedline_register_v2() { return 0; }',
            "the plugin has version 2 of the plugin interface, but Feedline .* has version 1",
        ),
        (REGISTER + '{ return feedline::plugin_failure(m, FEEDLINE_FAILED, "no licence"); }', "no licence"),
        (REGISTER + "{ return 3; }", "failed with code 3 and no message"),
        (REGISTER + '{ throw std::runtime_error("no"); }', "the plugin threw an exception"),
        (CODEC + REGISTER + "{ codec.size = 8;" + ADD, "has 8 bytes, but this"),
        (
            CODEC + REGISTER + "{ r->add_codec(r->host, &codec, m);" + ADD,
            "it registers the codec 'NAME' twice",
        ),
        (
            CODEC.replace("NAME", "png") + REGISTER + "{" + ADD,
            "'png' exists already",
        ),
        (
            CODEC.replace('{"MAGIC", 5}', '{"\\x89PN", 4}') + REGISTER + "{" + ADD,
            "has the magic bytes of the codec 'png'",
        ),
        (
            "void missing(); int use() { missing(); return 1; }" + REGISTER + "{ return 0; }",
            "cannot be loaded: .*missing",
        ),
    ],
)
def test_broken_plugins_are_refused(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.load_plugin(compiled(tmp_path, body))
    assert str(tmp_path) not in str(feedline._engine.loaded_plugins())


def test_files_that_are_no_libraries_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(feedline.ConfigError, match="the library cannot be loaded"):
        feedline.load_plugin(tmp_path / "text.so")
    with pytest.raises(feedline.ConfigError, match="the file does not exist"):
        feedline.load_plugin(tmp_path / "missing.so")
    with pytest.raises(feedline.ConfigError, match="path must be a path, not 7"):
        feedline.load_plugin(7)  # type: ignore[arg-type]


def test_an_exception_while_decoding_is_the_error_of_the_sample(tmp_path: Path) -> None:
    body = CODEC.replace("NAME", "thrower").replace("MAGIC", "THROW") + REGISTER
    feedline.load_plugin(compiled(tmp_path, body + "{" + ADD))
    with pytest.raises(feedline.DataError, match="the plugin threw an exception"):
        feedline.decode_image(b"THROW and more")
