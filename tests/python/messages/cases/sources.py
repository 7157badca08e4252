# SPDX-License-Identifier: Apache-2.0
"""The source, format and options of open, shard lists, caches and manifests."""

import json
import shutil

import made_data

import feedline
from messages.expressions import expressions, functions
from messages.samples import Samples


def _a_format_of_shards_that_are_folders(s: Samples) -> None:
    feedline.open(s.folder, verify="manifest")


def _shards_without_a_manifest(s: Samples) -> None:
    feedline.open(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")), verify="manifest")


def _a_damaged_manifest(s: Samples) -> None:
    s.write("feedline-pack.json", "{")
    feedline.open(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")), verify="manifest")


def _a_shard_that_the_manifest_lacks(s: Samples) -> None:
    feedline.open(s.folder).pack("here/packed")
    shutil.copy("here/packed/000000.tar", "here/packed/other.tar")
    feedline.open("here/packed/other.tar", verify="manifest")


def _a_shard_that_differs_from_the_manifest(s: Samples) -> None:
    feedline.open(s.folder).pack("here/packed")
    with open("here/packed/000000.tar", "r+b") as file:
        file.truncate(20_480)
    feedline.open("here/packed/000000.tar", verify="manifest")[0]


def _a_damaged_folder_of_packed_shards(s: Samples) -> None:
    feedline.open(s.folder).pack("here/packed")
    s.write("packed/feedline-pack.json", "{")
    feedline.open("here/packed")


def _an_unfinished_pack(s: Samples) -> None:
    feedline.open(s.folder).pack("here/packed")
    manifest = json.loads(s.root.joinpath("here/packed/feedline-pack.json").read_text())
    s.write("packed/feedline-pack.json", json.dumps({**manifest, "finished": False, "complete": False}))
    feedline.open("here/packed")


def _a_cache_folder_with_other_files(s: Samples) -> None:
    s.write("cache/notes.txt", "mine")
    feedline.open(s.shards, cache="here/cache")


def _a_cache_of_another_version(s: Samples) -> None:
    s.write("cache/feedline-cache.json", "{}")
    feedline.open(s.shards, cache="here/cache")


def _two_storages_in_one_source(s: Samples) -> None:
    feedline.open([str(s.shards[0]), "http://localhost:1/a.tar"])


def _a_folder_in_a_list_of_shards(s: Samples) -> None:
    feedline.open([str(s.shards[0]), "data"])


def _a_pattern_without_matches(s: Samples) -> None:
    feedline.open("data/tars/*.tfrecord")


def _a_range_of_shards_that_are_missing(s: Samples) -> None:
    feedline.open("data/tars/{000..009}.tar")


def _an_image(s: Samples) -> None:
    feedline.open(s.folder / "apple/000.jpg")


def _a_list_of_images(s: Samples) -> None:
    feedline.open([s.folder / "apple/000.jpg", s.folder / "apple/001.jpg"])


def _a_zip_archive(s: Samples) -> None:
    feedline.open(s.write("a.zip", b"PK\3\4" + bytes(100)))


def _an_archive_named_as_a_tar(s: Samples) -> None:
    feedline.open(s.write("a.tar", b"\xfd7zXZ\0" + bytes(600)))


def _a_gzip_that_is_not_a_tar(s: Samples) -> None:
    import gzip

    feedline.open(s.write("a.tar.gz", gzip.compress(b"text" * 400)))


def _a_text_file(s: Samples) -> None:
    feedline.open(s.write("notes.txt", "text"))


def _an_empty_folder(s: Samples) -> None:
    feedline.open("here")


def _a_folder_without_images(s: Samples) -> None:
    s.write("train/a/notes.txt", "text")
    feedline.open("here/train")


def _a_file_as_a_folder(s: Samples) -> None:
    feedline.open(s.write("notes.txt", "text"), format="folder")


def _a_folder_as_a_tar(s: Samples) -> None:
    feedline.open(s.folder, format="tar")


def _a_link_to_a_parent_folder(s: Samples) -> None:
    s.write("train/a/1.jpg", s.jpeg)
    (s.root / "here/train/a/again").symlink_to("..")
    feedline.open("here/train")


def _a_table_next_to_images(s: Samples) -> None:
    s.write("train/a/1.jpg", s.jpeg)
    s.write("train/metadata.csv", "file_name,label\na/1.jpg,0\n")
    feedline.open("here/train", fields=("image", "nothing"))


def _a_list_of_shards_with_other_counts(s: Samples) -> None:
    shutil.copy(s.shards[0], "here/000.tar")
    feedline.open(
        s.write(
            "list.json",
            json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "000.tar", "nsamples": 9}]}),
        )
    )


def _a_list_of_shards_without_names(s: Samples) -> None:
    feedline.open(s.write("list.json", json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"nsamples": 9}]})))


def _a_list_of_shards_without_shards(s: Samples) -> None:
    feedline.open(s.write("list.json", json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": []})))


def _a_list_of_shards_with_a_command(s: Samples) -> None:
    feedline.open(
        s.write(
            "list.json",
            json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "pipe:cat a.tar", "nsamples": 9}]}),
        )
    )


def _a_list_of_shards_with_a_count_that_is_text(s: Samples) -> None:
    feedline.open(
        s.write(
            "list.json",
            json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "a.tar", "nsamples": "9"}]}),
        )
    )


def _a_list_of_datasets(s: Samples) -> None:
    feedline.open(s.write("list.json", json.dumps({"__kind__": "wids-shard-index-v1", "datasets": [{"name": "a"}]})))


def _a_list_of_shards_that_is_truncated(s: Samples) -> None:
    feedline.open(
        s.write(
            "list.json",
            json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": "000.tar", "nsamples": 9}]})[:40],
        )
    )


def _a_list_of_shards_without_its_kind(s: Samples) -> None:
    feedline.open(s.write("list.json", json.dumps({"shardlist": [{"url": "000.tar", "nsamples": 9}]})))


def _a_list_of_sizes_that_is_truncated(s: Samples) -> None:
    feedline.open(s.write("sizes.json", '{"000.tar": 4, "001.t'))


def _a_list_of_sizes_that_is_truncated_after_its_first_name(s: Samples) -> None:
    feedline.open(s.write("sizes.json", '{"000.tar"'))


def _a_list_of_shards_that_is_truncated_after_its_kind(s: Samples) -> None:
    feedline.open(s.write("list.json", '{"__kind__": "wids-shard-index-v1"'))


def _a_list_of_shards_without_its_kind_that_is_truncated(s: Samples) -> None:
    feedline.open(s.write("list.json", '{"shardlist": [{"url": "000.tar", "nsam'))


def _an_empty_json_file(s: Samples) -> None:
    feedline.open(s.write("list.json", ""))


def _an_info_with_splits(s: Samples) -> None:
    info = {"splits": {"train": {"filenames": ["a.tar"], "shard_lengths": [3]}, "val": {"filenames": []}}}
    feedline.open(s.write("_info.json", json.dumps(info)))


def _an_info_with_too_few_lengths(s: Samples) -> None:
    info = {"splits": {"train": {"filenames": ["a.tar", "b.tar"], "shard_lengths": [3]}}}
    feedline.open(str(s.write("_info.json", json.dumps(info))) + "#train")


def _a_table_in_a_list_with_a_tar(s: Samples) -> None:
    feedline.open([str(s.shards[0]), str(s.write("t.csv", "image,label\na.jpg,0\n"))])


def _a_table_in_a_pattern_with_a_tar(s: Samples) -> None:
    shutil.copy(s.shards[0], "here/000.tar")
    s.write("t.csv", "image,label\na.jpg,0\n")
    feedline.open("here/{000.tar,t.csv}")


def _a_pixel_file_that_is_not_finished(s: Samples) -> None:
    s.small.cache("here/a.pixels")[0]
    feedline.open("here/a.pixels.filling", format="pixels")


def _a_pixel_file_of_text(s: Samples) -> None:
    feedline.open(s.write("a.pixels", "text" * 400), format="pixels")


def _a_truncated_pixel_file(s: Samples) -> None:
    feedline.pack_pixels(s.small, "here/a.pixels")
    with open("here/a.pixels", "r+b") as file:
        file.truncate(200)
    feedline.open("here/a.pixels")


def _a_damaged_pixel_file(s: Samples) -> None:
    feedline.pack_pixels(s.small, "here/a.pixels")
    with open("here/a.pixels", "r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff")
    feedline.open("here/a.pixels")


def _a_damaged_record_of_a_pixel_file(s: Samples) -> None:
    feedline.pack_pixels(s.small.take(1), "here/a.pixels", num_workers=1)  # threads may store a sample twice
    content = bytearray((s.root / "here/a.pixels").read_bytes())
    content[-100] ^= 255
    feedline.open(s.write("a.pixels", bytes(content)))[0]


def _fields_of_a_pixel_file(s: Samples) -> None:
    feedline.pack_pixels(s.small, "here/a.pixels")
    feedline.open("here/a.pixels", fields="image")


def _a_cache_of_other_pixels(s: Samples) -> None:
    s.small.cache("here/a.pixels")[0]
    s.images.resize((4, 4)).cache("here/a.pixels")[0]


def _a_cache_in_a_file_of_something_else(s: Samples) -> None:
    s.small.cache(s.write("a.pixels", "text"))[0]


def _a_changed_source_of_a_pickled_dataset(s: Samples) -> None:
    import pickle

    shutil.copytree(s.folder, "here/train")
    text = pickle.dumps(feedline.open("here/train"))
    (s.root / "here/train/apple/000.jpg").rename("here/train/apple/999.jpg")
    pickle.loads(text)


def _a_file_that_changed_after_opening(s: Samples) -> None:
    dataset = feedline.open(s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0")))
    made_data.write_tar(s.root / "here/a.tar", [("b.jpg", s.jpeg), ("b.cls", b"1"), ("c.jpg", s.png)])
    dataset[0]


def _an_info_without_splits(s: Samples) -> None:
    feedline.open(s.write("_info.json", json.dumps({"splits": {}})))


def _a_list_of_shards_with_a_number_as_name(s: Samples) -> None:
    feedline.open(s.write("list.json", json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": [{"url": 3}]})))


def _a_table_of_arrow(s: Samples) -> None:
    import pyarrow

    feedline.open(pyarrow.table({"image": ["a.jpg"]}))  # type: ignore[arg-type]


CASES = {
    **expressions("""
        feedline.open(None)
        feedline.open(3)
        feedline.open("")
        feedline.open([])
        feedline.open([""])
        feedline.open([None])
        feedline.open(b"data")
        feedline.open({"image": ["a.jpg"]})
        feedline.open({})
        feedline.open(np.zeros(3))
        feedline.open("no/such/folder")
        feedline.open("here/shard-%03d.tar")
        feedline.open("~/train")
        feedline.open("no/such/*.tar")
        feedline.open("data/{000..}.tar")
        feedline.open("data/{a}.tar")
        feedline.open("data/{000..999999999}.tar")
        feedline.open("data/{a,b.tar")
        feedline.open("data/a,b}.tar")
        feedline.open(folder, format="zip")
        feedline.open(folder, format=3)
        feedline.open(folder, format="tfrecord")
        feedline.open(folder, format="lmdb")
        feedline.open(folder, format="mds")
        feedline.open(folder, format="coco")
        feedline.open(folder, missing="drop")
        feedline.open(folder, index=3)
        feedline.open(folder, index="s3://bucket/index")
        feedline.open(folder, cache=3)
        feedline.open(folder, cache="memory")
        feedline.open(folder, cache="s3://bucket/cache")
        feedline.open(folder, cache_limit="1 GB")
        feedline.open(folder, cache="here/cache", cache_limit="200%")
        feedline.open(folder, cache="here/cache", cache_limit="much")
        feedline.open(folder, verify="all")
        feedline.open(folder, hedge=1)
        feedline.open(folder, listing_age=-1)
        feedline.open(folder, listing_age="day")
        feedline.open(folder, allow_commands="yes")
        feedline.open(folder, images="data")
        feedline.open(folder, split="train")
        feedline.open(folder, split=3)
        feedline.open(folder, crowd="keep")
        feedline.open(folder, crowd="some")
        feedline.open(folder, dtype="uint16")
        feedline.open(folder, retries=3)
        feedline.open("pipe:cat a.tar")
        feedline.open("pipe:exit 3", allow_commands=True)
        feedline.open("s4://bucket/train")
        feedline.open("file://host/train")
        feedline.open("file:///data/%zz")
        feedline.open("http:///a.tar")
        feedline.open("http://host/a b.tar")
        feedline.open("s3:///a.tar")
        feedline.inspect(3)
        feedline.inspect({"image": ["a.jpg"]})
        feedline.inspect(folder, format="zip")
        numbers.inspect()
        lengths.inspect()
        feedline.mix([images, images]).inspect()
        feedline.tokens(write("t.bin", bytes(64)), window=2, dtype="uint16").inspect()
        feedline.pack_pixels(3, "here/a.pixels")
        feedline.pack_pixels(small, "no/such/a.pixels")
        feedline.pack_pixels(numbers, "here/a.pixels")
        feedline.pack_pixels(small, "here/a.pixels", num_workers=-1)
    """),
    **functions(globals()),
}
