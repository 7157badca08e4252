# SPDX-License-Identifier: Apache-2.0
"""A cause is added by adding one file: docs/findings.md's own example, in a folder of its own."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("click", reason="click, for the command line, is not installed")
pytest.importorskip("rich", reason="rich, for the command line, is not installed")

from summaries import but, summary, waiting

from feedline.cli.root import run
from feedline.diagnose.causes import registered
from feedline.diagnose.verdict import evaluate
from feedline.errors import ConfigError

DOCUMENT = Path(__file__).parents[3] / "docs/findings.md"
CODE = "large_messages"
LARGE = summary(waiting(handover=0.5), {"busy": 0.2, "pickle_ms": 4.0, "unpickle_ms": 4.0, "message_bytes": 12e6})
SMALL = summary(waiting(handover=0.5), {"busy": 0.2, "pickle_ms": 4.0, "unpickle_ms": 4.0, "message_bytes": 5e5})


@pytest.fixture
def folder(tmp_path):
    if not DOCUMENT.is_file():
        pytest.skip("the documents are not here")
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / f"{CODE}.py").write_text(example)
    return tmp_path


def names(measured, causes=None):
    return [finding.code for finding in evaluate(measured, causes).verdicts]


def test_diagnose_names_it_in_its_turn(folder):
    causes = registered((folder,))
    assert names(LARGE) == ["worker_handover"] and names(LARGE, causes) == [CODE]
    assert names(SMALL, causes) == ["worker_handover"]
    (found,) = evaluate(LARGE, causes).verdicts
    assert found.evidence == ("each batch is a message of 12.0 MB",) and found.share == 0.5
    assert found.fix.startswith("Return tensors") and 0 < found.gain[0] < found.gain[1]


def test_it_abstains_and_is_limited_as_all_are(folder):
    from dataclasses import replace

    causes = registered((folder,))
    blind = replace(LARGE, missing={"workers": "nobody looked"})
    assert CODE in {one.code for one in evaluate(blind, causes).abstained} and CODE not in names(blind, causes)
    (found,) = evaluate(but(LARGE, steps=5), causes).verdicts
    assert found.confidence <= 0.6 and any("only 5 steps" in sentence for sentence in found.against)


def test_explain_prints_it(folder, capsys):
    assert run(["explain", CODE]) == 2
    assert "no finding has the code" in capsys.readouterr().err
    assert run(["explain", CODE, "--causes", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "shared memory" in text and "a pipe transfers" in text and "named" in text
    assert run(["explain", CODE, "--causes", str(folder), "--json"]) == 0
    (page,) = json.loads(capsys.readouterr().out)["pages"]
    assert page["thresholds"][0] == {"name": "much", "value": 4 << 20, "reason": page["thresholds"][0]["reason"]}


def test_the_former_module_names_can_still_be_imported(folder):
    file = folder / f"{CODE}.py"
    text = file.read_text().replace("feedline.diagnose.rules", "feedline.diagnose.judging")
    file.write_text(text.replace("judging.analysis import Analysis", "judging.case import Case as Analysis"))
    assert "judging.case" in file.read_text() and CODE in {cause.code for cause in registered((folder,))}


def test_what_is_registered_stays_as_it_was(folder):
    before = registered()
    registered((folder,))
    assert registered() is before and CODE not in {cause.code for cause in before}


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "defines no CAUSE"), ("CAUSE = 7", "defines no CAUSE"), (None, "the code must be the name of the file")],
)
def test_a_file_without_a_cause_of_its_name_is_an_error(folder, content, words):
    example = (folder / f"{CODE}.py").read_text()
    (folder / f"{CODE}.py").unlink()
    (folder / "other_name.py").write_text(example if content is None else content)
    with pytest.raises(ConfigError, match=words):
        registered((folder,))


def test_diagnose_takes_the_folder(folder, tmp_path, capsys):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "no_cause.py").write_text("")
    status = run(["diagnose", "--quick", "--causes", str(tmp_path / "broken"), "--", "true"])
    assert status == 2 and "no_cause.py defines no CAUSE" in capsys.readouterr().err
