# SPDX-License-Identifier: Apache-2.0
"""Feedline's own loaders: the stages of their threads, verdicts with their own wording, and the ladder of threads."""

import gzip

import made_parquet
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from summaries import HALF, LOADER, stages, summary
from test_signals import recording
from watched import recorded, rungs_of, watched, with_experiments

from feedline.diagnose.verdict import evaluate
from feedline.profiler.model import prediction
from feedline.profiler.summary import engine_summary, host_summary, timeline

pytest.importorskip("click", reason="click, for the command line, is not installed")

OWN = {**LOADER, "class": "feedline.Loader", "native": True}


def engine(running=None, delayed=0.0, idle=0.0, items=100, **busy):
    counters = {name: {"busy_s": 0.0, "items": 0.0, "blocked_s": 0.0, "starved_s": 0.0} for name in
                ("storage", "decode", "transform", "batch", "consumer")}  # fmt: skip
    for name, seconds in busy.items():
        counters[name] |= {"busy_s": seconds, "items": items}
    counters["batch"]["starved_s"] = idle
    times = {} if running is None else {"running_s": running, "delayed_s": delayed}
    return {"native": True, "engine": {"threads": 2, "batches": 10.0, "samples": 80.0, **times, "stages": counters}}


def test_busy_time_without_cpu_is_waiting_for_storage():
    making = engine_summary.making_of(engine(running=2.0, storage=6.0, decode=1.0, transform=1.0))
    assert making.wall_ms == pytest.approx(800) and making.cpu_ms == pytest.approx(200)
    assert making.stages["storage"] == pytest.approx(6 / 8)
    assert making.stages["transform"] == pytest.approx(1 / 8)


def test_waiting_for_a_cpu_is_no_ones_stage():
    crowded = engine_summary.making_of(engine(running=2.0, delayed=2.0, decode=3.0, transform=1.0))
    alone = engine_summary.making_of(engine(running=2.0, decode=1.5, transform=0.5))
    assert crowded.wall_ms == pytest.approx(alone.wall_ms) and crowded.stages == pytest.approx(alone.stages)
    assert crowded.delayed == pytest.approx(0.5) and alone.delayed == 0


def test_copying_out_of_the_page_cache_goes_with_what_is_made_of_it():
    assert engine_summary.making_of(engine(running=2.0, storage=1.0, decode=1.0)).stages["decode"] == pytest.approx(1)
    rows = engine_summary.making_of(engine(running=2.0, storage=1.5, batch=0.5)).stages
    assert rows["collate"] == pytest.approx(1, abs=1e-3)


def test_threads_that_wait_for_room_are_not_busy():
    assert engine_summary.making_of(engine(running=2.0, decode=2.0, idle=6.0)).busy == pytest.approx(0.25)


def test_without_the_threads_cpu_time_reading_is_waiting():
    making = engine_summary.making_of(engine(storage=3.0, decode=1.0))
    assert making.stages == pytest.approx(stages(storage=0.75, decode=0.25)) and making.cpu_ms == pytest.approx(100)


def test_decompressing_is_a_cause_only_if_little_of_it_is_delivered():
    def measured(delivered):
        facts = engine(running=2.0, storage=1.5, decode=0.5)
        facts["engine"] |= {"blocks_bytes": 8e9, "blocks_delivered_bytes": delivered}
        return engine_summary.making_of(facts)

    assert measured(1e9).reading == pytest.approx(0.75) and measured(1e9).stages["decode"] == pytest.approx(1)
    for delivered, causes in ((1e9, ["compressed_blocks", "cpu_decode"]), (4e9, ["cpu_decode"])):
        making = measured(delivered)
        figures = {name: getattr(making, name) for name in ("reading", "blocks", "stages")}
        found = evaluate(summary(HALF, figures, loader=OWN)).verdicts
        assert [one.code for one in found] == causes
        assert found[0].share == pytest.approx(0.5 * (0.75 if len(causes) == 2 else 1))
    assert engine_summary.making_of(engine(running=2.0, decode=1.0)).blocks is None


def test_blocks_that_a_run_decompresses_at_random_are_counted(tmp_path):
    rows = [{"n": i, "text": f"{i:05d}" * 200} for i in range(600)]
    content = made_parquet.file_of(rows, per_group=100, per_page=100, codec=2, pack=gzip.compress)
    (tmp_path / "x.parquet").write_bytes(content)
    measured = timeline.summarise(
        recorded(
            tmp_path,
            f"""
            import os
            os.environ["XDG_CACHE_HOME"] = os.devnull
            import feedline, feedline.testing
            feedline.testing.force(block_cache_bytes=120_000)
            data = feedline.open({str(tmp_path / "x.parquet")!r}, fields=("text:text",))
            for epoch in range(2):
                for batch in data.loader(10, shuffle=True, num_workers=1, output="numpy"): pass
            """,
        )
    )
    blocks = measured.making.blocks
    assert blocks is not None and 40 < blocks.per_byte < 110 and 0 < blocks.delivered_bytes <= 1_200_000


def test_an_engine_that_made_nothing_tells_nothing():
    assert engine_summary.making_of({"native": True}) is None
    assert engine_summary.making_of({"engine": {"batches": 0.0}}) is None


seconds = st.floats(0, 1e6)


@given(st.none() | seconds, seconds, seconds, seconds, seconds, seconds, seconds)
def test_whatever_was_counted_the_stages_are_shares(running, delayed, idle, storage, decode, transform, batch):
    facts = engine(running, delayed, idle, storage=storage, decode=decode, transform=transform, batch=batch)
    making = engine_summary.making_of(facts)
    assert making.stages is None or sum(making.stages.values()) == pytest.approx(1)
    assert all(share >= 0 for share in (making.stages or {}).values())
    assert 0 <= making.cpu_ms <= making.wall_ms + 1e-6
    assert making.busy is None or 0 <= making.busy <= 1


def test_more_threads_do_not_shorten_what_is_read_ahead():
    waiting = {"wall_ms": 80.0, "cpu_ms": 2.0, "stages": stages(storage=0.975, decode=0.025)}
    own = summary(HALF, {**waiting, "read_ahead_ms": 78.0}, workers=2, loader=OWN)
    lowered = summary(HALF, waiting, workers=2, loader={**OWN, "class": "feedline.torch_loader.data_loader.DataLoader"})
    assert prediction.cycle_ms(own, 4) == pytest.approx(0.5 + 39.0, abs=0.6)  # an epoch begins with a whole batch
    assert prediction.cycle_ms(lowered, 4) == pytest.approx(20.0, abs=0.8)
    fixes = [evaluate(measured).verdicts[0].fix for measured in (own, lowered)]
    assert fixes[0].startswith("Reads are already prefetched") and ".cache(" in fixes[0]
    assert (
        evaluate(own).more_workers
        == "more threads will not help: reads are already prefetched, and storage limits the rate"
    )
    assert fixes[1].startswith("num_workers=8. Keep more reads in flight: use more threads")


def test_fixes_are_in_the_loaders_own_words():
    decode = evaluate(summary(HALF, loader=OWN)).verdicts[0]
    assert decode.code == "cpu_decode" and ".cache(" in decode.fix and "--raw" in decode.fix
    few = evaluate(summary(HALF, {"wall_ms": 40.0, "cpu_ms": 39.0}, {"wanted_cpus": 2.1}, workers=2, loader=OWN))
    assert (few.verdicts[0].code, few.verdicts[0].fix) == ("too_few_workers", "num_workers=4.")
    assert few.verdicts[0].evidence[0].startswith("2 threads")
    assert evaluate(summary(HALF, loader=OWN)).more_workers.startswith("more threads will not help")


FROM_DISK = {"device_share": 0.9, "read_bytes_per_sample": 4096.0, "files_seen": 0}


@pytest.mark.parametrize(("form", "cause"), [("folder", "small_files"), ("files", "small_files"),
                                             ("webdataset", "storage_latency")])  # fmt: skip
def test_small_samples_are_small_files_where_each_has_one(form, cause):
    loader = {**OWN, "engine": {"format": form}}
    found = evaluate(summary(HALF, {"stages": stages(storage=1.0), "cpu_ms": 1.0}, FROM_DISK, workers=2, loader=loader))
    assert found.verdicts[0].code == cause


def test_what_threads_read_is_counted_by_their_engine():
    """They may read by calls that /proc does not count; for a file of 2,000 bytes, the disk reads 4,096."""
    facts = engine(storage=1.0)
    facts["engine"]["stages"]["storage"] |= {"items": 80.0, "bytes": 80 * 2000.0}
    window = host_summary.Window(seconds=1.0, tree=dict.fromkeys(host_summary._GROWING, 0.0))
    window.tree["device_bytes"] = 80 * 4096.0
    found = host_summary.host_summary(recording([]), window, facts, 80)
    assert found.read_bytes_per_sample == 4096 and found.device_share == 1
    window.tree["device_bytes"] = 0.0
    found = host_summary.host_summary(recording([]), window, facts, 80)
    assert found.read_bytes_per_sample == 2000 and found.device_share == 0


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    image = pytest.importorskip("PIL.Image", reason="Pillow, which makes the images, is not installed")
    folder = tmp_path_factory.mktemp("photos")
    pixels = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    large = image.fromarray(pixels).resize((640, 480))
    for name in range(64):
        (folder / str(name % 2)).mkdir(exist_ok=True)
        large.save(folder / str(name % 2) / f"{name}.jpg")
    return folder


LOOP = """
import time
import feedline
if __name__ == "__main__":
    photos = feedline.open({photos!r}).random_resized_crop(96)
    with photos.loader(batch_size=8, shuffle=True, num_workers=1, output="numpy") as loader:
        for epoch in range(24):
            for image, label in loader:
                time.sleep(0.001)
        print(int(label.sum()) >= 0, len(loader))
"""


def test_the_stages_of_an_own_loader_are_its_telemetry(tmp_path, photos):
    source = LOOP.format(photos=str(photos))
    status, out, _, found = with_experiments(tmp_path, source, "2s", lambda found: 1 in rungs_of(found))
    assert (status, out) == (0, "True 8\n")
    measured = found["summary"]
    assert measured["steps"] == 192 and measured["workers"] == 1
    engine_facts = measured["loader"]["engine"]
    assert 8 <= engine_facts["batches"] <= 192 and engine_facts["samples"] == 8 * engine_facts["batches"]
    assert engine_facts["stages"]["decode"]["items"] >= engine_facts["samples"]
    assert measured["making"]["stages"]["decode"] > 0.5
    assert measured["making"]["cpu_ms"] > 0 and measured["making"]["busy"] > 0
    assert not {"cpu_decode", "cpu_transform", "storage_latency"} & {a["cause"] for a in found["abstained"]}
    # a forked copy whose engine never ran can create loaders
    rungs = rungs_of(found)
    assert 1 in rungs and 0 not in rungs and all(rung["batches"] >= 3 for rung in rungs.values())


@pytest.mark.parametrize(("when", "ahead"), [("never", False), ("always", True)])
def test_whether_reads_are_ahead_is_known(tmp_path, photos, when, ahead):
    slow = f'import feedline.testing\nfeedline.testing.force(read_latency=0.005, read_ahead="{when}")\n'
    status, _, _, found = watched(tmp_path, slow + LOOP.format(photos=str(photos)), "--quick")
    assert status == 0 and found["summary"]["loader"]["engine"]["reads_ahead"] is ahead
    making = found["summary"]["making"]
    assert (making["read_ahead_ms"] > 0) is ahead or making["stages"]["storage"] == 0
    if not ahead:
        assert found["verdicts"][0]["cause"] == "storage_latency" and "memory_budget" in found["verdicts"][0]["fix"]


def test_a_lowered_loader_tells_its_stages_and_climbs_too(tmp_path, photos):
    pytest.importorskip("torchvision", reason="torchvision, whose transforms are lowered, is not installed")
    source = f"""
    import torchvision, feedline
    from torchvision import transforms
    if __name__ == "__main__":
        chain = transforms.Compose([transforms.RandomResizedCrop(96), transforms.ToTensor()])
        data = torchvision.datasets.ImageFolder({str(photos)!r}, chain)
        for epoch in range(4):
            for image, label in feedline.DataLoader(data, batch_size=8, shuffle=True, num_workers=1, lower="require"):
                pass
    """
    status, _, err, found = with_experiments(tmp_path, source, "2s", lambda found: {0, 1} <= rungs_of(found).keys())
    assert status == 0, err
    measured = found["summary"]
    # each epoch has its own engine; if it ends before it is sampled, nothing is known about it
    assert measured["loader"]["native"] and 8 <= measured["loader"]["engine"]["batches"] <= 32
    assert measured["making"]["stages"]["decode"] > 0.5
    assert {0, 1} <= rungs_of(found).keys()


ROWS = """
import time, numpy as np, torch, feedline
if __name__ == "__main__":
    data = {data}
    for batch in feedline.DataLoader(data, batch_size={size}, shuffle=True, num_workers={workers}, lower="require"):
        time.sleep(0.0005)
"""


@pytest.mark.parametrize(("size", "workers", "threads"), [(8, 0, 0), (512, 1, 1)])
def test_rows_of_arrays_are_collated(tmp_path, size, workers, threads):
    pytest.importorskip("torch", reason="torch, whose loader is lowered, is not installed")
    data = "torch.utils.data.TensorDataset(torch.zeros(20000, 1024))"
    status, _, err, found = watched(tmp_path, ROWS.format(data=data, size=size, workers=workers), "--quick")
    assert status == 0, err
    measured = found["summary"]
    assert measured["loader"]["native"] and measured["workers"] == threads
    assert measured["making"]["batches"] > 0
    assert measured["making"]["stages"]["collate"] == pytest.approx(1, abs=1e-3)
    assert not {"python_main_process", "cpu_transform", "storage_latency"} & {v["cause"] for v in found["verdicts"]}
