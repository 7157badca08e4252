# SPDX-License-Identifier: Apache-2.0
"""The comparison of promised gains with measured ones: with made-up figures, and two scripts with their second form."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch, whose loader is watched, is not installed")
pytest.importorskip("PIL", reason="Pillow, which makes the images, is not installed")
pytest.importorskip("feedline", reason="the package is not installed")

sys.path.insert(0, str(Path(__file__).parent))
import promises
import runner
from promises import Change, Promise
from scenarios import HELD_OUT, SCENARIOS

HALF_AS_MANY_AGAIN = Change(("collate",), (0.4, 0.6), mended="collate")
WORKERS = Change(("too_few_workers",), (0.9, 1.1), settings={"num_workers": 4})


def promise(*pairs, change=HALF_AS_MANY_AGAIN):
    return Promise(change, pairs)


@pytest.mark.parametrize(
    ("after", "near", "inside"),
    [
        (15.0, True, True),
        (14.1, True, True),
        (13.0, True, False),
        (18.0, True, False),
        (10.0, False, False),
        (25, False, False),
    ],
)
def test_a_promise_that_is_off_is_counted_as_off(after, near, inside):
    found = promise((10.0, after))
    assert found.measured == pytest.approx(after / 10)
    assert (found.near, found.inside) == (near, inside)
    assert ("OFF" in found.line()) == (not near)


def test_a_gain_is_the_mean_of_pairs_and_not_of_rates():
    """A machine that was half as fast in the second round says the same of the change as in the first."""
    found = promise((10.0, 15.0), (5.0, 7.5))
    assert found.measured == pytest.approx(1.5) and found.near and found.inside
    assert promise((10.0, 20.0), (10.0, 5.0)).measured == pytest.approx(1.0)


def test_an_interval_that_cannot_be_wrong_does_not_count_as_right():
    wide = Change(("collate",), (0.0, 9.0), mended="collate")
    found = promise((10.0, 31.0), change=wide)
    assert found.width == pytest.approx(10.0) and found.near and not found.inside
    assert "1 are too wide" in promises.summary([found])


def test_the_summary_counts_what_was_made():
    found = [promise((10, 15)), promise((10, 10)), promise((10, 13)), Promise(WORKERS, not_made="refused")]
    assert "2 of 3 promised gains came true within 20%: 67%; 1 lie inside" in promises.summary(found)
    assert promises.summary([found[-1]]) == "" and "not made, refused" in found[-1].line()
    assert found[0].as_dict()["near"] is True and found[1].as_dict()["near"] is False
    assert found[-1].as_dict()["not_made"] == "refused"


def test_changes_are_tried_in_turn_with_the_script_as_it_is():
    order = []

    def rate(change):
        order.append("as it is" if change is None else change.name)
        return 10.0 if change is None else 20.0

    found = promises.tried([WORKERS, HALF_AS_MANY_AGAIN], 2, 9.0, rate)
    once = ["num_workers=4", "collate mended"]
    assert order == [*once, "as it is", *once]  # the first time was the diagnosis
    assert [one.pairs for one in found] == [((9.0, 20.0), (10.0, 20.0))] * 2


def test_a_change_that_cannot_be_made_is_no_gain_and_is_not_tried_again():
    tries = []

    def rate(change):
        tries.append(change)
        return 10.0 if change is None else "the loader refused it"

    (found,) = promises.tried([WORKERS], 3, None, rate)
    assert found.pairs == () and found.not_made == "the loader refused it"
    assert tries == [None, WORKERS]
    made, refused = promises.tried([HALF_AS_MANY_AGAIN, WORKERS], 2, 10.0, lambda c: "no" if c is WORKERS else 15.0)
    assert made.pairs == ((10.0, 15.0), (15.0, 15.0)) and made.not_made is None
    assert refused.pairs == () and refused.not_made == "no"
    (found,) = promises.tried([WORKERS], 2, None, lambda change: "no steps")
    assert found.not_made == "no steps"


def test_promises_that_did_not_come_true_fail_a_run_on_a_quiet_machine_only(capsys):
    def outcome(others, *found, scenario=SCENARIOS[0]):
        return runner.Outcome(scenario, [], 1.0, 0.0, others, [], list(found))

    near, off = promise((10, 15)), promise((10, 10))
    assert runner.is_promise_kept([outcome(0.0, near, near, near, near, off)])
    assert not runner.is_promise_kept([outcome(0.0, near, near, near, off)])
    assert runner.is_promise_kept([outcome(100.0, off), outcome(0.0, near), outcome(0.0)])
    stand_in = next(scenario for scenario in SCENARIOS if scenario.stand_in)
    assert runner.is_promise_kept([outcome(0.0, near), outcome(0.0, off, scenario=stand_in)])
    assert "1 more, on a stand-in device" in capsys.readouterr().out


def test_every_script_that_is_reported_to_have_a_second_form_has_one():
    known = {one.path: set() for one in (*SCENARIOS, *HELD_OUT)}
    for one in (*SCENARIOS, *HELD_OUT):
        if not one.unlimited:  # else it is its container that has
            known[one.path] |= set(one.mended)
    for path, causes in known.items():
        text = path.read_text()
        own = set(re.findall(r'mended\("(\w+)"\)', text))
        for module in re.findall(r"^from (\w+) import", text, re.MULTILINE):
            other = path.parent / f"{module}.py"
            own |= set(re.findall(r'mended\("(\w+)"\)', other.read_text())) if other.exists() else set()
        assert causes <= own or "workers(" in text, path.name


@pytest.mark.parametrize("script", ["straggling_sample", "epoch_border"])
def test_a_fixed_script_is_faster(script, monkeypatch):
    """Both wait, or idle, for most of their time, however busy the machine is."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    scenario = next(one for one in SCENARIOS if one.script == script)
    outcome = runner.run(scenario, rounds=1)
    (found,) = (one for one in outcome.promises if one.change.mended == script)
    assert found.not_made is None, found
    assert found.measured > 1.3 and found.change.promised[0] > 0.1, found.line()
