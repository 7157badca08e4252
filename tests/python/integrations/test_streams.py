# SPDX-License-Identifier: Apache-2.0
"""Streaming datasets of others under the drop-in: as with torch's loader or their own, and gone on with from states.

MosaicML's, LitData's and Megatron-Energon's need environments of their own (build/streams), which the whole of
`tools/test --integrations` makes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKERS = ("0", "2", "persistent")
_HANG_S = 600


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """`found(KIND)`: the output of stream_runs.py for this kind (for Energon, of energon_runs.py), which runs once."""
    made = {}

    def runs(kind):
        if kind not in made:
            made[kind] = _run(kind, tmp_path_factory.mktemp(kind))
        return made[kind]

    return runs


def _run(kind, folder):
    python = Path(os.environ.get("FEEDLINE_STREAMS", "/nowhere"), kind, "bin", "python")
    if not python.exists():
        if importlib.util.find_spec(kind) is None:
            pytest.skip(f"{kind} is not installed; the whole of tools/test --integrations does that")
        python = Path(sys.executable)
    script = Path(__file__).with_name("energon_runs.py" if kind == "energon" else "stream_runs.py")
    done = subprocess.run(
        [str(python), str(script), kind, str(folder / "data")], capture_output=True, text=True, timeout=_HANG_S
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def flat(epoch):
    return [sample for batch in epoch for sample in batch]


@pytest.mark.parametrize("kind", ["streaming", "litdata"])
def test_what_comes_is_what_their_own_loader_gives_epoch_by_epoch(found, kind):
    for workers in WORKERS:
        runs = found(kind)[workers]
        assert runs["feedline"]["epochs"] == runs["own"]["epochs"], workers
        assert len({str(epoch) for epoch in runs["feedline"]["epochs"]}) == 3  # each is shuffled again
        assert set(flat(runs["feedline"]["epochs"][2])) == set(range(61))


@pytest.mark.parametrize("kind", ["streaming", "datasets", "webdataset"])
def test_what_comes_is_what_torchs_loader_gives(found, kind):
    for workers in WORKERS:
        runs = found(kind)[workers]
        assert runs["feedline"]["epochs"] == runs["torch"]["epochs"], workers
        assert set(flat(runs["feedline"]["epochs"][2])) == set(range(61))


@pytest.mark.parametrize("kind", ["streaming", "litdata"])
def test_a_state_resumes_in_any_epoch_and_after_its_end(found, kind):
    for workers in WORKERS:
        runs = found(kind)[workers]["feedline"]
        for stop in ("first", "within", "end"):
            assert runs[stop]["loaded"] == runs[stop]["going_on"], (workers, stop)
        assert 0 < len(flat(runs["within"]["loaded"][0])) < 61


@pytest.mark.parametrize("kind", ["streaming", "litdata"])
def test_a_state_resumes_as_one_of_their_own_loader(found, kind):
    for workers in WORKERS:
        runs = found(kind)[workers]
        assert runs["feedline"]["within"] == runs["own"]["within"], workers


@pytest.mark.parametrize("kind", ["streaming", "litdata"])
def test_another_number_of_workers_continues_with_what_is_left(found, kind):
    for workers in ("2", "persistent"):
        stop = found(kind)[workers]["feedline"]["other_workers"]
        assert sorted(flat(stop["loaded"][0])) == sorted(flat(stop["going_on"][0]))
        assert set(flat(stop["loaded"][1])) == set(range(61))


def test_webdatasets_pipelines_continue_where_workers_begin_with_the_epoch(found):
    runs = found("webdataset")
    assert runs["2"]["feedline"]["within"]["loaded"] == runs["2"]["feedline"]["within"]["going_on"]
    for workers in WORKERS:  # their epoch counter cannot be set, so only the first epoch is compared
        stop = runs[workers]["feedline"]["first"]
        assert stop["loaded"][0] == stop["going_on"][0], workers


def test_tables_of_hugging_face_continue_within_the_epoch_and_give_all_in_the_next(found):
    for workers in WORKERS:
        for stop in ("first", "within", "end"):
            run = found("datasets")[workers]["feedline"][stop]
            assert run["loaded"] == run["going_on"], (workers, stop)
            assert sorted(flat(run["loaded"][1])) == list(range(61)), (workers, stop)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_energons_loaders_give_what_their_own_give_and_resume_from_each_others_states(found, workers):
    runs = found("energon")[workers]
    for what in ("epochs", "basic", "taken"):
        assert runs["feedline"][what] == runs["own"][what], what
    assert len({str(epoch) for epoch in runs["feedline"]["epochs"]}) == 3
    assert {len(flat(epoch)) for epoch in runs["feedline"]["epochs"]} == {28}
    for of in ("own", "feedline"):
        loaded = runs["feedline"]["loaded"][of]
        assert loaded == runs["own"]["loaded"]["own"] == runs["own"]["loaded"][of], of
        assert loaded[0] == runs["feedline"]["taken"]["going_on"][0], of
        # with workers, Energon's next epoch begins with the worker at which the state was saved
        assert sorted(loaded[1]) == sorted(runs["feedline"]["taken"]["going_on"][1]), of
