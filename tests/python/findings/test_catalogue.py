# SPDX-License-Identifier: Apache-2.0
"""Every code has a page, every page is complete, and the documents agree with the rules' files."""

import importlib
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("click", reason="click, for the command line, is not installed")
pytest.importorskip("rich", reason="rich, for the command line, is not installed")

from feedline.cli.commands.explain import pages_of
from feedline.cli.root import run
from feedline.data.inspect import stored_images
from feedline.data.storage import storage_types
from feedline.diagnose import causes
from feedline.findings import formats
from feedline.top import alarms
from feedline.trace import causes as of_trace

CHECKOUT = Path(__file__).parents[3]
PAGES = pages_of()
VERBS = ("diagnose", "trace", "top", "inspect", "verify", "env", "diff", "doctor")


def explain(capsys, *arguments):
    status = run(["explain", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_every_verb_has_pages_and_none_has_two_of_a_code():
    assert {page.verb for page in PAGES} == set(VERBS)
    assert len({(page.verb, page.code) for page in PAGES}) == len(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.verb}-{page.code}")
def test_a_page_is_whole(page):
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", page.code)
    assert page.title and page.means and page.recognised and page.to_do
    assert page.verb in ("inspect", "verify", "diff") or page.example
    assert page.title[-1] != "." and all(text[-1] in ".!?" for text in (page.means, page.recognised, page.to_do))
    assert all(one.reason for one in page.thresholds)
    assert not re.search(r"data\sset", json.dumps(formats.entry_as_dict(page)))  # one word


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


@pytest.mark.parametrize("folder", ["diagnose.causes", "trace.causes", "top.alarms", "env.checks", "doctor.causes"])
def test_a_file_compares_with_numbers_that_have_a_name_and_a_reason(folder):
    """A bare number in a comparison of a rule would be a threshold that no page lists."""
    package = importlib.import_module(f"feedline.{folder}")
    for path in sorted(Path(package.__path__[0]).glob("[!_]*.py")):
        for line in path.read_text().splitlines():
            for found in re.findall(r"(?:[<>]=?) (\d[\d_.]*)", line):
                assert number(found) in (0.0, 1.0, 2.0), (path.name, line)  # none, one, or two


def test_every_cause_has_a_turn_of_its_own():
    priorities = [rule.priority for cause in causes.registered() for rule in cause.rules]
    assert len(set(priorities)) == len(priorities)
    of_others = [cause.priority for cause in of_trace.registered()], [alarm.priority for alarm in alarms.registered()]
    assert all(len(set(priorities)) == len(priorities) for priorities in of_others)


def test_every_code_of_the_engine_has_a_page():
    """Codes are literals before a severity, also as one of two; those of missing samples by the user's choice; those
    that end the scan of a shard or a walk; and those of invalid records and of errors when opening.
    """
    source = CHECKOUT / "src/format"
    if not source.is_dir():
        pytest.skip("the engine's sources are not here")
    texts = [path.read_text() for path in source.rglob("*.cpp") if not path.name.endswith("_test.cpp")]
    pattern = re.compile(
        r'"([a-z]+(?:_[a-z]+)+)",\s*(?:(?:[\w.]+\(\) \? |format::)?Severity::k|missing\b)'
        r'|\? "([a-z_]+)" : "[a-z_]+", Severity::k'
        r'|\b(?:stop|problem|report|add_error)\((?:findings, )?"([a-z_]+)"|\.code = "([a-z_]+)"'
        r'|\bProblem\(\{"([a-z_]+)"|\b(?:is_data|kData)\s+\? "([a-z_]+)"'
    )
    said = {name for text in texts for names in pattern.findall(text) for name in names if name}
    in_python = {page.code for page in (*storage_types.entries(), *stored_images.entries())}  # whose rule is in Python
    assert said == {page.code for page in PAGES if page.verb == "inspect"} - in_python


def test_the_document_has_every_page_and_its_links_lead_to_them(capsys):
    status, text, _ = explain(capsys, "--markdown")
    assert status == 0
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert headings == [f"{page.verb}: {page.code}" for page in PAGES]
    anchors = [re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings]
    assert re.findall(r"\]\(#([^)]+)\)", text) == anchors


@pytest.mark.parametrize("code", sorted({page.code for page in PAGES}))
def test_a_code_is_explained(capsys, code):
    status, text, _ = explain(capsys, code)
    assert status == 0
    printed = json.loads(explain(capsys, code, "--json")[1])
    assert printed["code"] == code and [page["verb"] for page in printed["pages"]] == [
        page.verb for page in PAGES if page.code == code
    ]
    flat = " ".join(text.split())
    for page in printed["pages"]:
        assert f"{code} (feedline {page['verb']})" in flat
        assert " ".join(page["means"].replace("`", "").split()) in flat
        assert all(f"{one['name']} " in flat for one in page["thresholds"])


def test_without_a_code_all_are_listed(capsys):
    status, text, _ = explain(capsys)
    assert status == 0 and all(page.code in text for page in PAGES)
    listed = json.loads(explain(capsys, "--json")[1])["codes"]
    assert [(one["code"], one["verb"]) for one in listed] == [(page.code, page.verb) for page in PAGES]


@pytest.mark.parametrize(
    ("code", "near"), [("stragling_sample", "straggling_sample"), ("cpu-decod", "cpu_decode"), ("qqq", "lists all")]
)
def test_an_unknown_code_is_a_usage_error_that_names_those_near_it(capsys, code, near):
    status, text, error = explain(capsys, code)
    assert status == 2 and not text and near in error and code in error


def test_a_code_may_be_written_with_hyphens(capsys):
    assert explain(capsys, "CPU-Quota")[1] == explain(capsys, "cpu_quota")[1]
