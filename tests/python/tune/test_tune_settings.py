# SPDX-License-Identifier: Apache-2.0
"""Settings in a file: they are read as written, damaged files are refused, and another machine is reported."""

from __future__ import annotations

import contextlib
import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import feedline
from feedline.loader import tuned_settings as saved

quick = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns the facts of this machine that settings contain."""
    facts = {"cpu": "Abacus 3", "usable_cpus": 4.0, "memory_bytes": 16_000_000_000, "memory_limit_bytes": None,
             "architecture": "x86_64", "gpus": 0, "gpu0_name": None}  # fmt: skip
    monkeypatch.setattr(saved, "machine_fingerprint", lambda: facts)
    return facts


def made(**changes: Any) -> dict[str, Any]:
    """Settings for a script whose own loader, torch's, was tuned."""
    arguments = {"num_workers": 4, "prefetch_factor": 2, "persistent_workers": True, "pin_memory": False}
    whole = {
        "feedline_settings": 1,
        "use": "torch",
        "arguments": {"DataLoader": arguments, "loader": None},
        "machine": saved.machine_fingerprint(),
        "data": {"dataset": "list", "samples": 12, "source": "train"},
    }
    return copy.deepcopy({**whole, **changes})


def put(folder: Path, value: Any) -> Path:
    path = folder / "tuned.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


@quick
@given(
    workers=st.integers(0, 64),
    depth=st.integers(1, 16),
    persistent=st.booleans(),
    pinned=st.booleans(),
    batch=st.none() | st.integers(1, 4096),
)
def test_what_is_saved_is_loaded(tmp_path, workers, depth, persistent, pinned, batch) -> None:
    arguments = {
        "num_workers": workers,
        "prefetch_factor": depth if workers else None,
        "persistent_workers": persistent and workers > 0,
        "pin_memory": pinned,
        **({} if batch is None else {"batch_size": batch}),
    }
    saved.write(made(arguments={"DataLoader": arguments, "loader": None}), tmp_path / "tuned.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = feedline.load_settings(tmp_path / "tuned.json")
    assert loaded == arguments
    assert list(tmp_path.iterdir()) == [tmp_path / "tuned.json"]


@pytest.mark.parametrize("workers", [0, 2])
def test_both_loaders_take_them(tmp_path, workers) -> None:
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    arguments = {"num_workers": workers, "prefetch_factor": 3 if workers else None, "persistent_workers": workers > 0,
                 "pin_memory": False}  # fmt: skip
    path = put(tmp_path, made(arguments={"DataLoader": arguments, "loader": None}))
    for kind in (data.DataLoader, feedline.DataLoader):
        loader = kind(list(range(12)), batch_size=4, **feedline.load_settings(path))
        assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        assert loader.num_workers == workers


def test_a_sources_settings_fit_its_loader(tmp_path, train) -> None:
    arguments = {"num_workers": 2, "memory_budget": 1 << 22}
    path = put(tmp_path, made(arguments={"DataLoader": {"num_workers": 2}, "loader": arguments}))
    with train.loader(batch_size=7, output="numpy", **feedline.load_settings(path, for_="loader")) as loader:
        assert len(list(loader)) == 3 and loader.stats()["threads"] == 2


def test_a_scripts_settings_are_not_for_native_threads(tmp_path) -> None:
    with pytest.raises(feedline.ConfigError, match="feedline tune SOURCE"):
        feedline.load_settings(put(tmp_path, made()), for_="loader")
    with pytest.raises(feedline.ConfigError, match="DataLoader"):
        feedline.load_settings(put(tmp_path, made()), for_="Loader")


@pytest.mark.parametrize("for_", ["DataLoader", "torch.DataLoader", "feedline.DataLoader"])
@pytest.mark.parametrize("workers", [None, {"num_workers": 2}])  # additional data of an earlier version of Feedline
def test_a_sources_settings_are_not_for_a_data_loader(tmp_path, for_, workers) -> None:
    path = put(tmp_path, made(use="feedline", arguments={"DataLoader": workers, "loader": {"num_workers": 2}}))
    with pytest.raises(feedline.ConfigError, match=r'own loader, feedline.open.*for_="loader"'):
        feedline.load_settings(path, for_=for_)


def test_settings_found_with_our_data_loader_report_it_in_torchs(tmp_path) -> None:
    path = put(tmp_path, made(use="feedline"))
    with pytest.warns(saved.SettingsWarning, match=r'with Feedline\'s DataLoader.*for_="feedline.DataLoader"'):
        assert feedline.load_settings(path)["num_workers"] == 4
    with pytest.raises(feedline.ConfigError, match="does not apply to torch's: use `from feedline import DataLoader`"):
        feedline.load_settings(path, for_="torch.DataLoader")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert feedline.load_settings(path, for_="feedline.DataLoader")["num_workers"] == 4
        feedline.load_settings(put(tmp_path, made(use="torch")), for_="torch.DataLoader")


def test_auto_is_a_number_of_threads_and_not_of_workers(tmp_path, train) -> None:
    arguments = {"num_workers": "auto", "memory_budget": 1 << 22}
    path = put(tmp_path, made(arguments={"DataLoader": None, "loader": arguments}))
    with train.loader(batch_size=7, output="numpy", **feedline.load_settings(path, for_="loader")) as loader:
        assert len(list(loader)) == 3 and loader.stats()["controller"] is not None
    for damaged in ({"DataLoader": arguments, "loader": None}, {"DataLoader": None, "loader": {"num_workers": "all"}}):
        with pytest.raises(feedline.ConfigError, match="is damaged"):
            feedline.load_settings(put(tmp_path, made(arguments=damaged)), for_="loader")
    with pytest.raises(feedline.ConfigError, match="is damaged"):
        feedline.load_settings(put(tmp_path, made(arguments={"DataLoader": None, "loader": None})))


@pytest.mark.parametrize(
    ("fact", "value"), [("cpu", "Abacus 4"), ("usable_cpus", 8.0), ("memory_bytes", 8_000_000_000), ("gpus", 1)]
)
def test_another_machine_is_reported(tmp_path, machine, fact, value) -> None:
    path = put(tmp_path, made(machine={**machine, fact: value}))
    with pytest.warns(saved.SettingsWarning, match=f"{fact} is .* and was {value!r}"):
        assert feedline.load_settings(path)["num_workers"] == 4


def test_a_few_pages_of_memory_are_no_other_machine(tmp_path, machine) -> None:
    path = put(tmp_path, made(machine={**machine, "memory_bytes": machine["memory_bytes"] - 4096}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feedline.load_settings(path)


def test_other_data_is_reported(tmp_path) -> None:
    path = put(tmp_path, made())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feedline.load_settings(path, source=[0] * 12)
        feedline.load_settings(path, source="train")
    with pytest.warns(saved.SettingsWarning, match="the dataset has 13 samples, and had 12 when measured"):
        feedline.load_settings(path, source=[0] * 13)
    with pytest.warns(saved.SettingsWarning, match="tuple, and was a list"):
        feedline.load_settings(path, source=(0,) * 12)
    with pytest.warns(saved.SettingsWarning, match="'other', and was 'train'"):
        feedline.load_settings(path, source="other")


def test_a_later_version_reports_it(tmp_path) -> None:
    with pytest.raises(
        feedline.ConfigError, match="version 2, but this Feedline reads only versions up to 1: update Feedline"
    ):
        feedline.load_settings(put(tmp_path, made(feedline_settings=2)))


def test_no_file_is_the_operating_systems_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        feedline.load_settings(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"feedline_settings": NaN}', '{"feedline_settings": true}', "[" * 100_000]
)
def test_what_holds_no_settings_is_refused(tmp_path, text) -> None:
    with pytest.raises(feedline.ConfigError, match=r"tuned\.json"):
        feedline.load_settings(put(tmp_path, text))


def test_a_file_that_is_too_large_is_not_read(tmp_path) -> None:
    with pytest.raises(feedline.ConfigError, match="larger than any"):
        feedline.load_settings(put(tmp_path, " " * (2 << 20)))


@pytest.mark.parametrize(
    "change",
    [
        {"num_workers": -1},
        {"num_workers": 2.0},
        {"num_workers": True},
        {"num_workers": 1 << 70},
        {"prefetch_factor": 0},
        {"persistent_workers": 1},
        {"pin_memory": None},
        {"batch_size": 0},
        {"batch_size": None},
        {"collate_fn": "os.system"},
        {"num_workers": 0},  # with workers' settings in the same file
    ],
)
def test_an_argument_that_cannot_be_is_damage_and_is_named(tmp_path, change) -> None:
    arguments = {**made()["arguments"]["DataLoader"], **change}
    path = put(tmp_path, made(arguments={"DataLoader": arguments, "loader": None}))
    with pytest.raises(feedline.ConfigError, match=r"tuned\.json is damaged: arguments\.DataLoader"):
        feedline.load_settings(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@quick
@given(data=st.data())
def test_any_damage_is_a_clear_error_or_no_damage(tmp_path, data) -> None:
    """A part of the file is replaced by anything: a ConfigError, or arguments of the right types."""
    whole = made()
    inside = data.draw(st.sampled_from([whole, whole["arguments"], whole["arguments"]["DataLoader"], whole["data"]]))
    inside[data.draw(st.sampled_from([*inside, "more"]))] = data.draw(json_values)
    with contextlib.suppress(feedline.ConfigError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = feedline.load_settings(put(tmp_path, whole), source=[1])
        assert set(loaded) <= {"num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "batch_size"}
        assert type(loaded["num_workers"]) is int and loaded["num_workers"] >= 0


@quick
@given(cut=st.integers(0, 400), byte=st.integers(0, 255))
def test_a_file_with_a_wrong_byte_or_cut_short_is_a_clear_error_or_whole(tmp_path, cut, byte) -> None:
    whole = json.dumps(made()).encode()
    position = cut % len(whole)
    for damaged in (whole[:position], whole[:position] + bytes([byte]) + whole[position + 1 :]):
        (tmp_path / "tuned.json").write_bytes(damaged)
        with contextlib.suppress(feedline.ConfigError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert type(feedline.load_settings(tmp_path / "tuned.json")["num_workers"]) is int
