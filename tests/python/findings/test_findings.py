# SPDX-License-Identifier: Apache-2.0
"""The vocabulary: the parts of a finding, how it is shown, and how rules are registered."""

import copy
import pickle
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedline.errors import ConfigError
from feedline.findings import CERTAIN, SEVERITIES, Entry, Finding, Threshold, formats, modules_in, severity_of
from feedline.findings.catalogue import thresholds_of

TEXT = st.text(max_size=40)
FINDINGS = st.builds(
    Finding,
    TEXT,
    st.sampled_from(SEVERITIES),
    st.floats(0, 1),
    st.floats(0, 1),
    st.lists(TEXT, max_size=3).map(tuple),
    st.lists(TEXT, max_size=3).map(tuple),
    TEXT,
    st.tuples(st.floats(0, 9), st.floats(0, 9)),
)


@given(FINDINGS)
def test_a_run_record_gives_back_what_was_found(finding):
    read = formats.of_cause(formats.as_cause(finding) | {"severity": finding.severity})
    assert read == finding
    without_against = formats.of_cause(formats.as_step_cause(finding))  # trace has no contradicting evidence
    assert without_against == Finding(**{**vars(finding), "against": ()})


@given(FINDINGS)
def test_a_page_shows_all_of_a_finding(finding):
    heading, sentences, fix = formats.pieces(finding)
    assert finding.code in heading and ("certain" in heading) is (finding.confidence >= CERTAIN)
    assert sentences == [*finding.evidence, *(f"but: {one}" for one in finding.against)]
    assert fix.startswith(finding.fix) and ("Predicted gain" in fix) is (finding.gain[1] > 0)


def test_the_words_for_shares():
    shares = (0.0, 0.0999, 0.10, 0.1999, 0.20, 1.0)
    assert [severity_of(share) for share in shares] == ["note", "note", "warning", "warning", "critical", "critical"]


def test_an_alarm_is_what_is_critical():
    for severity, word in (("critical", "alarm"), ("note", "note")):
        alarm = formats.as_alarm(Finding("swap", severity, evidence=("it swaps",)))
        assert alarm == {"name": "swap", "severity": word, "text": "it swaps"}


def test_a_threshold_is_the_number_that_it_is():
    limit = Threshold(0.3, "of the time")
    assert limit == 0.3 and 2 * limit == 0.6 and f"{limit:.0%}" == "30%" and limit.reason == "of the time"
    for other in (copy.deepcopy(limit), pickle.loads(pickle.dumps(limit))):
        assert other == limit and other.reason == limit.reason


def test_a_page_lists_the_thresholds_that_a_file_names():
    module = types.ModuleType("made")
    module.SMALL, module.LARGE, module.other = Threshold(1, "a"), Threshold(2, "b"), 3.0
    assert [tuple(one) for one in thresholds_of(module)] == [("large", 2.0, "b"), ("small", 1.0, "a")]


def test_a_page_shows_all_of_an_entry():
    entry = Entry("a_code", "diagnose", "title of it", "meaning of it", "recognising", "doing", "abstaining", "a case")
    for lines in (formats.entry_lines(entry), formats.entry_markdown(entry)):
        text = "\n".join(lines)
        assert all(value in text for value in vars(entry).values() if isinstance(value, str) and value != entry.title)
        assert "Title of it." in text


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one module, next to an empty folder."""
    made, beside = tmp_path / "made_rules", tmp_path / "beside"
    made.mkdir(), beside.mkdir()
    (made / "__init__.py").write_text("")
    (made / "first.py").write_text("NAME = 'first'\n")
    (made / "_shared.py").write_text("raise RuntimeError('no rule')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("made_rules")
    yield sys.modules["made_rules"], beside
    for name in [name for name in sys.modules if name.startswith("made_rules")]:
        del sys.modules[name]


def test_a_file_registers_by_being_there(package):
    made, beside = package
    assert [module.NAME for module in modules_in(made)] == ["first"]
    (beside / "second.py").write_text("NAME = 'second'\n")
    (beside / "_shared.py").write_text("raise RuntimeError('no rule')\n")
    assert [module.NAME for module in modules_in(made, [beside])] == ["first", "second"]
    assert [module.NAME for module in modules_in(made)] == ["first"]


def test_a_file_in_a_subfolder_registers_too(package, tmp_path):
    made, _ = package
    for folder in (tmp_path / "made_rules/more", tmp_path / "made_rules/more/deep"):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (tmp_path / "made_rules/more/deep/earliest.py").write_text("NAME = 'earliest'\n")
    (tmp_path / "made_rules/more/last.py").write_text("NAME = 'last'\n")
    (tmp_path / "made_rules/more/_shared.py").write_text("raise RuntimeError('no rule')\n")
    assert [module.NAME for module in modules_in(made)] == ["earliest", "first", "last"]
    (tmp_path / "made_rules/more/first.py").write_text("")
    with pytest.raises(ConfigError, match=r"two files are named first\.py: .*made_rules/.*first\.py"):
        modules_in(made)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("first.py", "", "two files are named first.py"),
        ("broken.py", "1 +", "broken.py cannot be imported: SyntaxError"),
        ("fails.py", "raise KeyError('x')", "fails.py cannot be imported: KeyError"),
    ],
)
def test_a_file_that_is_no_rule_is_named(package, name, content, words):
    made, beside = package
    (beside / name).write_text(content)
    with pytest.raises(ConfigError, match=words):
        modules_in(made, [beside])


def test_a_folder_that_is_not_there_is_named(package, tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        modules_in(package[0], [tmp_path / "nowhere"])
