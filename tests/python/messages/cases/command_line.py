# SPDX-License-Identifier: Apache-2.0
"""Arguments of the subcommands, and files that they cannot use."""

import json
import os
from pathlib import Path

import made_records

from feedline import record
from messages.command_line import command_line as cli
from messages.expressions import expressions, functions
from messages.samples import Samples


def _bench_record(s: Samples, name: str = "run.json", **changes: object) -> str:
    path = s.write(name, "")
    record.write({**made_records.bench(), **changes}, path)
    return str(path)


def diagnosis_record_of(s: Samples) -> str:
    path = s.write("diagnosis.json", "")
    record.write(record.from_diagnosis(made_records.diagnosis()), path)
    return str(path)


def _records_of_two_kinds(s: Samples) -> None:
    cli("diff", _bench_record(s), diagnosis_record_of(s))


def _a_record_of_a_later_version(s: Samples) -> None:
    path = _bench_record(s)
    whole = json.loads(s.root.joinpath(path).read_text())
    cli("report", s.write("later.json", json.dumps({**whole, "run_record": 99})))


def _a_record_that_lacks_a_part(s: Samples) -> None:
    path = _bench_record(s)
    whole = json.loads(s.root.joinpath(path).read_text())
    del whole["command"]
    cli("report", s.write("part.json", json.dumps(whole)))


def _a_record_that_is_a_list(s: Samples) -> None:
    cli("report", s.write("run.json", "[1]"))


def _a_record_of_text(s: Samples) -> None:
    cli("report", s.write("run.json", "text"))


def _a_record_of_other_json(s: Samples) -> None:
    cli("report", s.write("run.json", '{"a": 1}'))


def _a_record_with_nan(s: Samples) -> None:
    cli("report", s.write("run.json", '{"run_record": NaN}'))


def _a_page_over_its_record(s: Samples) -> None:
    path = _bench_record(s)
    cli("report", path, "--page", path)


def _a_page_in_a_missing_folder(s: Samples) -> None:
    cli("report", _bench_record(s), "--page", "here/none/run.html")


def _a_price_that_is_text(s: Samples) -> None:
    s.patch.setenv("FEEDLINE_GPU_PRICE", "cheap")
    cli("report", _bench_record(s))


def _a_comparison_with_a_figure_that_is_missing(s: Samples) -> None:
    path = _bench_record(s)
    cli("compare", path, path, "--figure", "happiness")


def _a_comparison_of_different_measurements(s: Samples) -> None:
    cli("compare", _bench_record(s), diagnosis_record_of(s))


def _a_comparison_with_a_folder_without_records(s: Samples) -> None:
    cli("compare", "here", _bench_record(s, "more/run.json"))


def _a_trace_without_events(s: Samples) -> None:
    cli("trace", s.write("trace.json", '{"a": 1}'))


def _a_trace_of_text(s: Samples) -> None:
    cli("trace", s.write("trace.json", "text"))


def _a_trace_merged_into_itself(s: Samples) -> None:
    path = s.write("trace.json", '{"traceEvents": []}')
    cli("trace", path, "--merge", s.write("spans.json", '{"traceEvents": []}'), path)


def _two_traces_that_are_merged(s: Samples) -> None:
    path = s.write("trace.json", '{"traceEvents": []}')
    cli("trace", path, path, "--merge", path, "here/merged.json")


def _packing_into_the_source(s: Samples) -> None:
    cli("pack", s.folder, s.folder / "packed")


def _packing_into_a_file(s: Samples) -> None:
    cli("pack", s.folder, s.write("file", "mine"))


def _packing_into_a_folder_with_files(s: Samples) -> None:
    s.write("out/notes.txt", "mine")
    cli("pack", s.folder, "here/out")


def _packing_again_with_other_arguments(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 3)
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2)


def _packing_a_whole_into_ranges(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 3, "--shard-range", "0:1")
    cli("pack", s.folder, "here/out", "--samples-per-shard", 3)


def _packing_ranges_that_overlap(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:2")
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "1:3")


def _packing_a_range_without_shards(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 3, "--shard-range", "7:9")


def _packing_a_damaged_image(s: Samples) -> None:
    s.write("train/a/1.jpg", "text")
    cli("pack", "here/train", "here/out", "--check")


def _packing_with_a_damaged_manifest(s: Samples) -> None:
    s.write("out/feedline-pack.json", "{")
    cli("pack", s.folder, "here/out")


def _packing_two_samples_of_one_key(s: Samples) -> None:
    for name in ("a.tar", "b.tar"):
        s.write_tar(("k.jpg", s.jpeg), ("k.cls", "0"), name=name)
    cli("pack", "here/{a,b}.tar", "here/out")


def _packing_mds_of_different_columns(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.txt", "x"), ("b.jpg", s.jpeg))
    cli("pack", path, "here/out", "--to", "mds", "--fields", "jpg txt")


def _merging_a_folder_without_ranges(s: Samples) -> None:
    cli("merge-index", "here")


def _merging_ranges_with_a_gap(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:1")
    cli("merge-index", "here/out")


def _merging_a_damaged_range(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:1")
    for path in (s.root / "here/out").glob("*.json"):
        path.write_text("{")
    cli("merge-index", "here/out")


def _opening_ranges(s: Samples) -> None:
    import feedline

    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:1")
    feedline.open("here/out")


def _indexing_a_file_over_http(s: Samples) -> None:
    cli("index", s.shards[0])


def _indexing_a_folder_for_dali(s: Samples) -> None:
    cli("index", s.folder, "--as", "dali")


def _indexing_a_truncated_tar_for_dali(s: Samples) -> None:
    path = s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0"))
    path.write_bytes(path.read_bytes()[:1200])
    cli("index", path, "--as", "dali")


def _indexing_a_name_with_a_space_for_dali(s: Samples) -> None:
    cli("index", s.write_tar(("a b.jpg", s.jpeg), ("a b.cls", "0")), "--as", "dali")


def _indexing_a_truncated_tfrecord(s: Samples) -> None:
    import made_tfrecords

    path = made_tfrecords.write(s.root / "here/a.tfrecord", [made_tfrecords.example({"image": s.jpeg, "label": 0})])
    path.write_bytes(path.read_bytes()[:-20])
    cli("index", "here/a.tfrecord", "--as", "tfindex")


def _indexing_with_an_output_next_to_the_shard(s: Samples) -> None:
    cli("index", s.shards[0], "--as", "dali", "--output", "here/x.idx")


def _indexing_shards_of_one_name_for_open_clip(s: Samples) -> None:
    for name in ("a/0.tar", "b/0.tar"):
        (s.root / "here" / name).parent.mkdir()
        s.write_tar(("k.jpg", s.jpeg), ("k.cls", "0"), name=name)
    cli("index", "here/{a,b}/0.tar", "--as", "open_clip", "--output", "here/sizes.json")


def _verifying_with_a_progress_file_of_other_arguments(s: Samples) -> None:
    cli("verify", s.folder, "--resume", "here/progress")
    cli("verify", s.folder, "--resume", "here/progress", "--decode")


def _verifying_with_a_foreign_progress_file(s: Samples) -> None:
    cli("verify", s.folder, "--resume", s.write("progress", "my notes\nand more\n"))


def _verifying_with_a_progress_file_in_a_missing_folder(s: Samples) -> None:
    cli("verify", s.folder, "--resume", "here/none/progress")


def _staging_over_a_limit(s: Samples) -> None:
    cli("stage", s.folder, "here/out", "--limit", "100")


def _staging_into_a_folder_with_files(s: Samples) -> None:
    s.write("out/apple/000.jpg", "mine")
    cli("stage", s.folder, "here/out")


def _staging_into_a_file(s: Samples) -> None:
    cli("stage", s.folder, s.write("out", "mine"))


def _staging_a_folder_by_fields(s: Samples) -> None:
    s.write("f/images/1.jpg", s.jpeg)
    s.write("f/texts/1.txt", "x")
    cli("stage", "here/f", "here/out", "--fields", "images/{key}.jpg texts/{key}.txt")


def _staging_a_damaged_packed_shard(s: Samples) -> None:
    cli("pack", s.folder, "here/packed")
    with open("here/packed/000000.tar", "r+b") as file:
        file.seek(700)
        file.write(b"\xff\xff")
    cli("stage", "here/packed", "here/out")


def _a_cache_that_is_no_cache(s: Samples) -> None:
    s.write("cache/notes.txt", "mine")
    cli("cache", "ls", "here/cache")


def _bench_of_arguments_of_two_modes(s: Samples) -> None:
    cli("bench", s.folder, "--device", "cuda")


def _bench_of_a_record_over_its_source(s: Samples) -> None:
    cli("bench", s.shards[0], "--record", s.shards[0])


def _bench_against_torch_of_tars(s: Samples) -> None:
    cli("bench", s.shards[0], "--seconds", "600", "--against", "torch")


def _tune_of_a_file_that_is_a_script(s: Samples) -> None:
    cli("tune", s.write("train.py", ""))


def _tune_of_settings_and_a_record_in_one_file(s: Samples) -> None:
    cli("tune", s.folder, "--settings", "here/a.json", "--record", "here/a.json")


def _causes_in_a_folder_with_an_error(s: Samples) -> None:
    s.write("causes/slow.py", "1 / 0")
    cli("explain", "--causes", "here/causes", "slow")


def _causes_in_a_folder_without_a_rule(s: Samples) -> None:
    s.write("causes/slow.py", "A = 1")
    cli("explain", "--causes", "here/causes", "slow")


def _a_record_that_is_larger_than_any(s: Samples) -> None:
    cli("report", s.write("run.json", " " * 300_000_000))


def _a_diagnosis_that_is_damaged(s: Samples) -> None:
    cli("report", s.write("run.json", json.dumps({"schema": "feedline.diagnosis/1", "verdicts": 3})))


def _packing_with_a_manifest_of_another_version(s: Samples) -> None:
    s.write("out/feedline-pack.json", '{"version": 99}')
    cli("pack", s.folder, "here/out")


def _packing_with_a_manifest_without_shards(s: Samples) -> None:
    cli("pack", s.folder, "here/out")
    with open("here/out/feedline-pack.json") as file:
        manifest = json.load(file)
    del manifest["shards"]
    s.write("out/feedline-pack.json", json.dumps(manifest))
    cli("pack", s.folder, "here/out")


def _packing_while_another_process_packs(s: Samples) -> None:
    import fcntl

    (s.root / "here/out").mkdir()
    with open(s.write("out/.lock", ""), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        handle = os.open("here/out", os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            cli("pack", s.folder, "here/out")
        finally:
            os.close(handle)


def _packing_a_class_folder_that_tar_readers_skip(s: Samples) -> None:
    s.write("train/__a__/1.jpg", s.jpeg)
    cli("pack", "here/train", "here/out")


def _packing_ranges_of_skipped_samples(s: Samples) -> None:
    for i in range(4):
        s.write(f"train/a/{i}.jpg", "text" if i < 2 else s.jpeg)
    cli("pack", "here/train", "here/out", "--samples-per-shard", 2, "--shard-range", "0:1", "--check",
        "--on-error", "skip")  # fmt: skip


def _merging_ranges_of_two_datasets(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:1")
    cli("pack", s.folder, "here/more", "--samples-per-shard", 2, "--shard-range", "1:3", "--shuffle")
    for path in (s.root / "here/more").glob("*[nr]"):
        path.rename(s.root / "here/out" / path.name)
    cli("merge-index", "here/out")


def _merging_a_range_that_is_not_finished(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:3")
    (path,) = (s.root / "here/out").glob("*.json")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "shards": manifest["shards"][:1]}))
    cli("merge-index", "here/out")


def _merging_ranges_that_overlap(s: Samples) -> None:
    cli("pack", s.folder, "here/out", "--samples-per-shard", 2, "--shard-range", "0:2")
    cli("pack", s.folder, "here/more", "--samples-per-shard", 2, "--shard-range", "1:3")
    for path in (s.root / "here/more").glob("*[nr]"):
        path.replace(s.root / "here/out" / path.name)
    cli("merge-index", "here/out")


def _indexing_a_folder_as_a_list(s: Samples) -> None:
    cli("index", s.folder, "--as", "wids", "--output", "here/list.json")


def _indexing_an_empty_tar_for_dali(s: Samples) -> None:
    cli("index", s.write_tar(), "--as", "dali")


def _indexing_a_folder_with_a_link_to_its_parent(s: Samples) -> None:
    s.write("train/a/1.jpg", s.jpeg)
    (s.root / "here/train/a/again").symlink_to("..")
    cli("index", "here/train")


def _verifying_with_json_of_another_kind_as_progress_file(s: Samples) -> None:
    cli("verify", s.folder, "--resume", s.write("progress", '{"a": 1}\n'))


def _verifying_with_lists_as_progress_file(s: Samples) -> None:
    cli("verify", s.folder, "--resume", s.write("progress", "[1]\n[2]\n"))


def _verifying_while_another_process_verifies(s: Samples) -> None:
    import fcntl

    with open(s.write("progress", ""), "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        cli("verify", s.folder, "--resume", "here/progress")


def _two_causes_of_one_name(s: Samples) -> None:
    s.write("causes/storage_latency.py", "A = 1")
    cli("explain", "--causes", "here/causes", "slow")


def _counters_that_are_truncated(s: Samples) -> None:
    from feedline.top.published import parse

    parse(b'{"a"', 1, 0)


def _counters_of_another_version(s: Samples) -> None:
    from feedline.top.published import parse

    parse(b'{"feedline_counters": 99}', 1, 0)


def _no_run_to_watch(s: Samples) -> None:
    from feedline.top import published, watch

    watch.choose(None, lambda user, timeout_s: published.Found((), (), ()), Path("here"))


CASES = {
    **expressions("""
        cli("inspect", "no/such/folder")
        cli("inspect", folder, "--show", "here/x.txt")
        cli("inspect", folder, "--show", "here/none/x.png")
        cli("bench")
        cli("bench", folder, "--seconds", "nan")
        cli("bench", folder, "--num-workers", "many")
        cli("bench", folder, "--samples", 1000)
        cli("bench", folder, "--seed", 3)
        cli("bench", folder, "--record", "here/none/run.json")
        cli("bench", folder, "--record", "s3://bucket/run.json")
        cli("bench", folder, "--record", "~/run.json")
        cli("bench", folder, "--record", "here")
        cli("bench", folder, "--record", "")
        cli("bench", folder, "--shuffle-quality", "--batch-size", 8)
        cli("bench", folder, "--shuffle-quality", "--against", "torch")
        cli("bench", folder, "--shuffle-quality", "--record", "here/run.json")
        cli("bench", folder, "--shuffle-quality", "--samples", 1000)
        cli("bench", "--shuffle-quality")
        cli("bench", "--device", "cuda", "--num-workers", 2)
        cli("bench", "--device", "cpu")
        cli("bench", "--device", "tpu")
        cli("bench", "source", "http://host/000.tar", "http://host/001.tar")
        cli("pack", "no/such/folder", "here/out")
        cli("pack", folder, "here/out", "--shard-size", "much")
        cli("pack", folder, "here/out", "--shard-size", "500")
        cli("pack", folder, "here/out", "--shard-size", "1GB", "--samples-per-shard", 3)
        cli("pack", folder, "here/out", "--compression", "zstd")
        cli("pack", folder, "here/out", "--to", "mds", "--compression", "lzma")
        cli("pack", folder, "here/out", "--to", "mds", "--compression", "gz:99")
        cli("pack", folder, "here/out", "--to", "mds", "--hashes", "crc")
        cli("pack", folder, "here/out", "--to", "mds", "--shard-size", "8GB")
        cli("pack", folder, "here/out", "--shard-range", "4")
        cli("pack", folder, "here/out", "--shard-range", "8:4")
        cli("pack", folder, "here/out", "--restart-interval", "0.5")
        cli("pack", folder, "here/out.pixels", "--raw", 8, "--shuffle")
        cli("pack", folder, "here/none/out.pixels", "--raw", 8)
        cli("pack", folder, "ftp://host/out")
        cli("pack", folder, "s3://")
        cli("pack", folder, "s3://bucket/out?x=1")
        cli("merge-index", "no/such/folder")
        cli("index", "no/such/folder")
        cli("index", shards[0], "--as", "wids", "--output", "here/none/list.json")
        cli("index", "s3://bucket/train")
        cli("verify", "no/such/folder")
        cli("stage", folder, "s3://bucket/train")
        cli("stage", folder, "here/out", "--limit", "much")
        cli("stage", "no/such/folder", "here/out")
        cli("cache", "verify", "here/none")
        cli("cache", "prune", "here/none", "--limit", "much")
        cli("trace", "here/none.json")
        cli("report", "here/none.json")
        cli("diff", "here/none.json", "here/none.json")
        cli("compare", "here/none.json", "here/none.json")
        cli("compare", "here/none.json", "here/none.json", "--fail-on", "much")
        cli("diagnose", "--budget", "soon", "--", "python", "train.py")
        cli("diagnose", "--record", "here/none/run.json", "--", "python", "train.py")
        cli("diagnose", "--", "no-such-program")
        cli("diagnose", "--", "here/none.py")
        cli("tune", "no/such/folder")
        cli("tune", folder, "--budget", "soon")
        cli("tune", folder, "--batch-size-range", "256:32")
        cli("tune", folder, "--memory", "much")
        cli("tune", folder, "--keep-running")
        cli("tune", folder, "--ladder")
        cli("tune", "--ladder", "--keep-running", "--", "python", "train.py")
        cli("tune", "--ladder", "--budget", "5s", "--", "true")
        cli("tune", "--ladder", "--", "no-such-program")
        cli("tune", "--batch-size", 8, "--", "python", "train.py")
        cli("tune", "python", "train.py")
        cli("tune", "--", "--budget", "5")
        cli("tune", "--settings", "here/none/a.json", "--", "python", "train.py")
        cli("tune", "--", "no-such-program")
        cli("top", 999999999)
        cli("top", "--interval", "nan")
        cli("doctor", "no/such/folder")
        cli("explain", "no_such_code")
        cli("explain", "strage_latency")
    """),
    **functions(globals()),
}
