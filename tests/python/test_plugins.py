# SPDX-License-Identifier: Apache-2.0
"""Plugins: examples/cpp/plugin is built with the installed headers and used from Python; broken plugins are refused."""

from __future__ import annotations

import os
import pickle
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import feedline
from feedline.data import plugins

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cpp" / "plugin"
COMPILER = os.environ.get("CXX") or shutil.which("c++")

pytestmark = [
    pytest.mark.skipif(not COMPILER, reason="no C++ compiler"),
    pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("ninja"), reason="no cmake and ninja on PATH"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("plugin")
    include = f"-DFEEDLINE_INCLUDE={feedline.include_folder()}"
    for command in (["-S", str(EXAMPLE), "-B", str(tree), "-G", "Ninja", include], ["--build", str(tree)]):
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
        batches = list(dataset.center_crop((6, 8)).loader(batch_size=2, output="numpy", layout="NHWC"))
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
    assert np.array_equal(feedline.decode_image(data, (2, 1, 6, 5)), pixels[1:5, 2:6])
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
        ("no_such", {}, "the operation 'no_such' is not registered"),
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


def test_samples_that_a_plugin_refuses_are_skipped_in_all_threads(plugin: feedline.Plugin, tmp_path: Path) -> None:
    path = tmp_path / "0.pairs"
    images = write_pairs(path, 40)
    data = bytearray(path.read_bytes())
    begins = [struct.unpack_from("<Q", data, 15 + 24 * i)[0] for i in range(40)]
    for i in (3, 17, 39):
        data[begins[i] + 4] += 1  # a wider image, whose rows are missing
    path.write_bytes(data)
    dataset = feedline.open(path).apply("example_posterize", bits=2).center_crop((6, 8))
    loader = dataset.loader(
        batch_size=4, shuffle=True, num_workers=4, on_error="skip", error_budget=3, output="numpy", layout="NHWC"
    )
    batches = list(loader)
    labels = np.concatenate([batch.label for batch in batches]).tolist()
    assert sorted(labels) == [i for i in range(40) if i not in (3, 17, 39)]
    assert np.array_equal(np.concatenate([batch.image for batch in batches]), np.stack(images)[labels] & 0xC0)
    with pytest.raises(feedline.DataError, match="the plugin's codec 'raw8': truncated: rows are missing"):
        list(dataset.loader(batch_size=4, output="numpy"))


def test_threads_may_load_the_same_plugin(library: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        loaded = list(threads.map(feedline.load_plugin, [library] * 32))
    assert set(loaded) == {feedline.load_plugin(library)}
    assert [row[0] for row in feedline._engine.loaded_plugins()].count(str(library)) == 1


def test_a_remote_folder_is_listed(plugin: feedline.Plugin, tmp_path: Path) -> None:
    write_pairs(tmp_path / "0.pairs", 2)
    write_pairs(tmp_path / "1.pairs", 1)
    assert len(feedline.open(f"example://{tmp_path}/")) == 3
    assert feedline.inspect(f"example://{tmp_path}/", format="pairs").samples == 3


# ---- other processes ----


def in_another_process(program: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, input=data, capture_output=True, env=environment)


UNPICKLE = "import pickle, sys; print(int(pickle.load(sys.stdin.buffer)[1].image.astype(int).sum()))"


def test_a_pickled_dataset_loads_the_plugin(plugin: feedline.Plugin, tmp_path: Path) -> None:
    write_pairs(tmp_path / "0.pairs", 2)
    dataset = feedline.open(f"example://{tmp_path}/0.pairs").apply("example_posterize", bits=3)
    done = in_another_process(UNPICKLE, data=pickle.dumps(dataset))
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) == int(dataset[1].image.astype(int).sum())


def test_a_pickled_dataset_whose_plugin_is_missing_is_an_error(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    shutil.copy(library, copy)
    write_pairs(tmp_path / "0.pairs", 2)
    program = "import feedline, pickle, sys; feedline.load_plugin(sys.argv[1]); "
    program += "sys.stdout.buffer.write(pickle.dumps(feedline.open(sys.argv[2])))"
    done = in_another_process(program, str(copy), str(tmp_path / "0.pairs"))
    assert done.returncode == 0, done.stderr.decode()
    copy.unlink()
    failed = in_another_process(UNPICKLE, data=done.stdout)
    assert f"ConfigError: load_plugin: '{copy}': the file does not exist" in failed.stderr.decode()


def test_workers_that_are_spawned_load_the_plugin(plugin: feedline.Plugin, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    images = write_pairs(tmp_path / "0.pairs", 4)
    dataset = feedline.open(tmp_path / "0.pairs").apply("example_posterize", bits=2)
    loader = torch.utils.data.DataLoader(dataset, 2, num_workers=1, multiprocessing_context="spawn")
    made = np.concatenate([batch.image.numpy() for batch in loader])
    assert np.array_equal(made, (np.stack(images) & 0xC0).transpose(0, 3, 1, 2))


ROWS = """
static int open_file(void*, const feedline_file* f, void**, uint64_t* n, feedline_message*) { *n = f->bytes; return 0; }
static void close_file(void*, void*) {}
static int locate(void*, void*, uint64_t i, uint64_t* at, uint64_t* n, feedline_message*) { *at = i, *n = 1; return 0; }
static int read_row(void*, void*, uint64_t, feedline_bytes stored, const feedline_memory*, feedline_bytes* values,
                    feedline_message*) { values[0] = stored; return 0; }
static const feedline_field fields[] = {{"data", "bytes"}};
static const feedline_format_v1 rows{sizeof rows, "rows8", "VERSION", nullptr, nullptr, 0, fields, 1, open_file,
                                     close_file, locate, read_row};
int feedline_register_v1(const feedline_registry_v1* r, feedline_message* m) {
  return r->add_format(r->host, &rows, m);
}
"""
RESUME = """
import feedline, json, sys
feedline.load_plugin(sys.argv[1])
loader = feedline.open(sys.argv[2], format="rows8").loader(batch_size=2, output="numpy")
if len(sys.argv) > 3:
    loader.load_state_dict(json.loads(sys.argv[3]))
else:
    next(iter(loader))
    state = loader.state_dict()
    print(json.dumps(state))
"""


def test_a_state_is_refused_if_the_plugins_format_has_another_version(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"0123456789")
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        compiled(tmp_path / version, ROWS.replace("VERSION", version))
    libraries = [str(tmp_path / version / "bad.so") for version in ("1", "2")]
    saved = in_another_process(RESUME, libraries[0], str(tmp_path / "data"))
    assert saved.returncode == 0, saved.stderr.decode()
    same = in_another_process(RESUME, libraries[0], str(tmp_path / "data"), saved.stdout.decode())
    assert same.returncode == 0, same.stderr.decode()
    other = in_another_process(RESUME, libraries[1], str(tmp_path / "data"), saved.stdout.decode())
    assert "load_state_dict: the state is from another dataset" in other.stderr.decode()


FLAT = """
static int header(void*, feedline_bytes, int* w, int* h, feedline_message*) { *w = *h = 2; return 0; }
static int decode(void*, feedline_bytes, uint8_t* out, size_t stride, feedline_message*) {
  for (int i = 0; i < 6; ++i) out[i] = out[stride + i] = VERSION;
  return 0;
}
static const char* const ends[] = {"flat"};
static const feedline_codec_v1 flat{sizeof flat, "flat", "VERSION", nullptr, ends, 1, {"FLAT", 4}, header, decode};
int feedline_register_v1(const feedline_registry_v1* r, feedline_message* m) { return r->add_codec(r->host, &flat, m); }
"""
CACHED = """
import feedline, sys
feedline.load_plugin(sys.argv[1])
dataset = feedline.open(sys.argv[2]).resize((2, 2)).cache(sys.argv[3])
print([int(batch.image.max()) for batch in dataset.loader(1, output="numpy")])
"""


def test_cached_pixels_are_refused_if_the_codec_has_another_version(tmp_path: Path) -> None:
    (tmp_path / "photos" / "cats").mkdir(parents=True)
    (tmp_path / "photos" / "cats" / "a.flat").write_bytes(b"FLAT")
    given = (str(tmp_path / "photos"), str(tmp_path / "cached.pixels"))
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        compiled(tmp_path / version, FLAT.replace("VERSION", version))
    libraries = [str(tmp_path / version / "bad.so") for version in ("1", "2")]
    for _ in range(2):
        done = in_another_process(CACHED, libraries[0], *given)
        assert done.stdout.decode().strip() == "[1]", done.stderr.decode()
    other = in_another_process(CACHED, libraries[1], *given)
    assert "codecs flat 1" in other.stderr.decode() and "codecs flat 2" in other.stderr.decode()


LISTED_TWICE = """
import feedline, sys
print(len(feedline.open(sys.argv[2], index=sys.argv[3])), end=" ")
feedline.load_plugin(sys.argv[1])
print(len(feedline.open(sys.argv[2], index=sys.argv[3])))
"""


def test_a_stored_listing_without_a_plugins_images_is_not_used(library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos" / "cats"
    folder.mkdir(parents=True)
    (folder / "a.png").write_bytes(b"")
    (folder / "b.raw8").write_bytes(b"")
    (tmp_path / "index").mkdir()
    for path in (folder, folder.parent):
        os.utime(path, (1_000_000_000, 1_000_000_000))  # listings of folders that have just changed are not stored
    for _ in range(2):
        done = in_another_process(LISTED_TWICE, str(library), str(folder.parent), str(tmp_path / "index"))
        assert done.stdout.decode().split() == ["1", "2"], done.stderr.decode()
        assert list((tmp_path / "index").iterdir())


# ---- plugins that are refused ----

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
        (REGISTER + '{ return feedline::plugin_failure(m, FEEDLINE_FAILED, "\\xFF\\xFE"); }', r"\(\): "),
        (REGISTER + "{ return 3; }", "failed with code 3 and no message"),
        (REGISTER + '{ throw std::runtime_error("no"); }', "the plugin threw an exception"),
        (CODEC.replace("NAME", "name") + REGISTER + "{ codec.size = 8;" + ADD, "has the size 8, but version 1"),
        (
            CODEC.replace("NAME", "name") + REGISTER + "{ r->add_codec(r->host, &codec, m);" + ADD,
            "it registers a codec twice: 'name'",
        ),
        (CODEC.replace("NAME", "png") + REGISTER + "{" + ADD, "'png' exists already"),
        (ROWS.replace("rows8", "test_of_python"), "'test_of_python', which a Python function has registered"),
        (
            "void missing(); int use() { missing(); return 1; }" + REGISTER + "{ return 0; }",
            "cannot be loaded: .*missing",
        ),
    ],
)
def test_broken_plugins_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str) -> None:
    monkeypatch.setitem(plugins._formats, "test_of_python", plugins._Format(len, ()))
    with pytest.raises(feedline.ConfigError, match=message):
        feedline.load_plugin(compiled(tmp_path, body))
    assert str(tmp_path) not in str(feedline._engine.loaded_plugins())


def test_names_of_plugins_cannot_be_registered_in_python(plugin: feedline.Plugin) -> None:
    with pytest.raises(feedline.ConfigError, match="the format 'pairs' exists already"):
        feedline.format("pairs")(len)
    with pytest.raises(feedline.ConfigError, match="Feedline or a plugin reads files with the extension 'pairs'"):
        feedline.format("test_pairs", extensions=["pairs"])(len)
    with pytest.raises(feedline.ConfigError, match="the operation 'example_halve' exists already"):
        feedline.operation(name="example_halve")(len)


def test_files_that_are_no_libraries_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("text")
    for path, message in (
        (tmp_path / "text.so", "the library cannot be loaded"),
        (tmp_path, "the library cannot be loaded"),
        (tmp_path / "missing.so", "the file does not exist"),
        (tmp_path / "text.so" / "inside", "the path cannot be resolved: Not a directory"),
        ("", "the file does not exist"),
        ("text\0.so", "the path has a zero byte"),
        (7, "path must be a path, not 7"),
        (b"text.so", "path must be a path, not b'text.so'"),
    ):
        with pytest.raises(feedline.ConfigError, match=message):
            feedline.load_plugin(path)  # type: ignore[arg-type]


def test_an_exception_while_decoding_is_the_error_of_the_sample(tmp_path: Path) -> None:
    body = CODEC.replace("NAME", "thrower").replace("MAGIC", "THROW") + REGISTER
    feedline.load_plugin(compiled(tmp_path, body + "{" + ADD))
    with pytest.raises(feedline.DataError, match="the plugin threw an exception"):
        feedline.decode_image(b"THROW and more")


def test_the_header_is_c99(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "plugin.c"
    source.write_text(
        '#include "feedline/plugin/plugin.h"\n'
        "int feedline_register_v1(const feedline_registry_v1* registry, feedline_message* message) {\n"
        "  return registry->size == sizeof *registry ? FEEDLINE_OK : (message->text[0] = '?', FEEDLINE_FAILED);\n}\n"
    )
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [compiler, *flags, "-I", feedline.include_folder(), str(source), "-o", str(tmp_path / "plugin.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert feedline.load_plugin(tmp_path / "plugin.so")[1:] == ((), (), (), ())
