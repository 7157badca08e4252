# SPDX-License-Identifier: Apache-2.0
"""Trials of autocast off, with bfloat16 and with float16: forced, measured, and refused if they would not be
informative.
"""

import json
import sys
from types import SimpleNamespace

import pytest
from summaries import FLOAT32, but, on_gpu, summary

pytest.importorskip("click", reason="click, for the command line, is not installed")
from click.testing import CliRunner

from feedline.cli.commands.diagnose import diagnose
from feedline.diagnose import precision_trial
from feedline.diagnose.experiments.forced_autocast import Forced
from feedline.diagnose.precision_trial import PrecisionTrial, Way
from feedline.profiler.recordings import Recording

torch = pytest.importorskip("torch", reason="torch, whose autocast is forced, is not installed")

SCRIPT = """
import json, sys, time, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = set()
class Samples(torch.utils.data.Dataset):
    def __len__(self): return 240
    def __getitem__(self, i):
        seen.add(("sample", str(model(torch.ones(64)).dtype)))
        return torch.ones(64)
for batch in torch.utils.data.DataLoader(Samples(), batch_size=4):
    out = model(batch)
    seen.add(("step", str(out.dtype)))
    with torch.autocast("cpu", dtype=torch.float16):
        seen.add(("own", str(model(batch).dtype)))
    with torch.autocast("cpu", enabled=False):
        seen.add(("left", str(model(batch).dtype)))
    out.float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.02)  # steps that take less are told together, and then there are too few to measure
seen.add(("after", str(model(batch).dtype)))
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(sorted(seen)) + "\\n")
print("what it prints")
"""


@pytest.mark.measures
def test_each_run_has_its_own_autocast_whatever_the_script_asks(tmp_path, capfd):
    script, found = tmp_path / "train.py", tmp_path / "seen"
    script.write_text(SCRIPT)
    command = [sys.executable, "-W", "ignore", str(script), str(found)]
    tried = precision_trial.compare(command, "cpu", ("off", "bfloat16"))
    assert [(way.autocast, way.why) for way in tried.ways] == [("off", None), ("bfloat16", None)]
    out, errors = capfd.readouterr()
    assert out == "" and errors.count("what it prints") == 2
    kinds = [dict(json.loads(line)) for line in found.read_text().splitlines()]
    for kind, name in zip(kinds, ("float32", "bfloat16"), strict=True):
        assert kind["step"] == kind["own"] == f"torch.{name}"
        assert kind["sample"] == kind["left"] == kind["after"] == "torch.float32"
    base, half = tried.ways
    for way in tried.ways:
        assert way.low <= way.steps_per_s <= way.high and way.memory_bytes is None  # without a GPU
    assert base.ratio is None and half.ratio == pytest.approx(half.steps_per_s / base.steps_per_s)
    assert half.ratio_low <= half.ratio <= half.ratio_high
    assert "compare the losses" in tried.lines()[-1] and "GradScaler" in tried.lines()[-1]


@pytest.fixture
def forced(monkeypatch):
    """forced(dtype) returns a `Forced` and its next(); torch is restored afterwards."""
    monkeypatch.setattr(torch.autocast, "__enter__", torch.autocast.__enter__)
    hooks = []
    module = SimpleNamespace(register_optimizer_step_post_hook=hooks.append)
    monkeypatch.setitem(sys.modules, "torch.optim.optimizer", module)
    notes = {}
    recorder = SimpleNamespace(write_json=lambda name, facts: notes.update(facts))

    def make(dtype):
        made = Forced(torch, "cpu", dtype, recorder)
        return made, made.around_next(lambda iterator: next(iterator.batches)), notes, hooks

    yield make
    assert not torch.is_autocast_enabled("cpu")


def loop(*batches):
    return SimpleNamespace(batches=iter(batches))


def test_a_loop_inside_a_step_leaves_the_step_as_it_was(forced):
    _, step, notes, _ = forced("bfloat16")
    outer, inner = loop(1, 2), loop(3)
    step(outer)
    step(inner)
    assert torch.is_autocast_enabled("cpu")
    with pytest.raises(StopIteration):
        step(inner)
    assert torch.is_autocast_enabled("cpu")  # the enclosing step continues
    step(outer)
    with pytest.raises(StopIteration):
        step(outer)
    assert not torch.is_autocast_enabled("cpu")
    assert notes["steps"] > 0 and notes["why"] is None


def test_weights_that_were_cast_are_cast_again_after_they_have_changed(forced):
    _, step, _, hooks = forced("bfloat16")
    iterator, weight = loop(1), torch.nn.Parameter(torch.ones(2, 2))
    step(iterator)
    assert (torch.ones(2, 2) @ weight)[0, 0] == 2
    with torch.no_grad():
        weight.fill_(3)
    hooks[0](None, None, None)
    assert (torch.ones(2, 2) @ weight)[0, 0] == 6
    with pytest.raises(StopIteration):
        step(iterator)


@pytest.mark.parametrize(("dtype", "product"), [("off", torch.float32), ("float16", torch.float16)])
def test_a_scripts_own_autocast_is_of_the_forced_type(forced, dtype, product):
    forced(dtype)
    weight = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (weight @ weight).dtype == product
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        assert (weight @ weight).dtype == torch.float32


def test_a_type_that_cannot_be_entered_is_reported(forced, monkeypatch):
    def refuse(*_arguments, **_options):
        raise RuntimeError("Current CUDA Device does not support bfloat16.\nmore")

    made, step, notes, _ = forced("bfloat16")
    monkeypatch.setattr(made, "_torch", SimpleNamespace(autocast=refuse))
    step(loop(1))
    made.tell()
    assert notes["why"] == "Current CUDA Device does not support bfloat16." and notes["steps"] == 1


# -- refusals and messages

RUN = Recording(["x"], 0, 0, 1, [], [], {}, [], 1)
HALF = {**FLOAT32, "elements": {"torch.bfloat16": 100, "torch.float32": 10}}


@pytest.mark.parametrize(
    ("measured", "recording", "why"),
    [
        (on_gpu(device=FLOAT32), RUN, None),
        (on_gpu(device={**FLOAT32, "elements": {}}), RUN, None),
        (summary(), RUN, "no step of the loop used a GPU"),
        (but(on_gpu(device={**FLOAT32, "type": "standin"}), loader={}), RUN, "no step of the loop used a GPU"),
        (on_gpu(device=HALF), RUN, "half precision"),
        (None, RUN, "no training loop"),
        (on_gpu(device=FLOAT32), Recording(["x"], 3, 0, 1, [], [], {}, [], 1), "failed"),
    ],
    ids=["gpu", "no optimizer", "cpu", "another device", "half", "no loop", "failed"],
)
def test_nothing_is_tried_where_it_would_tell_nothing(measured, recording, why):
    reason = precision_trial.refusal(measured, recording)
    assert (reason is None) if why is None else why in reason


def test_the_command_line_reports_why_nothing_was_tried(monkeypatch, tmp_path):
    monkeypatch.setattr("feedline.diagnose.watch.watch", lambda *_arguments, **_options: RUN)
    output = tmp_path / "found.json"
    done = CliRunner().invoke(diagnose, ["--amp", "--output", str(output), "--", "x"], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert json.loads(output.read_text())["precision"]["not_tried"] == "no training loop was found"
    assert "mixed precision was not tried: no training loop was found" in done.stderr


def test_a_difference_within_the_intervals_is_called_none():
    base = Way("off", 10.0, 9.5, 10.5, memory_bytes=8 << 30)
    same, faster = Way("bfloat16", 10.2, 9.7, 10.7), Way("float16", 16.0, 15.0, 17.0, memory_bytes=5 << 30)
    ways = (
        base,
        *(precision_trial._compared_with(base, way) for way in (same, faster)),
        Way("float16", why="it failed"),
    )
    off, bf16, fp16, failed = PrecisionTrial(ways).lines()[1:5]
    assert "no difference shown" in bf16 and "memory" not in bf16
    assert "1.60 times [1.43, 1.79]" in fp16 and "5.00 GiB" in fp16 and "no difference" not in fp16
    assert "8.00 GiB" in off and "times" not in off and failed.endswith("it failed")
