# SPDX-License-Identifier: Apache-2.0
"""Every correction of common advice is shown where readers need it, and everything that docs/doctor.md lists exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("click", reason="the command line is not installed")
pytest.importorskip("rich", reason="the command line is not installed")

from feedline.cli.commands.explain import pages_of

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documents are not here", allow_module_level=True)

ROWS = re.findall(r"^\| (W\d+): (.+?) (?<!\\)\| (.+?) (?<!\\)\| (.+?) \|$", (DOCS / "doctor.md").read_text(), re.M)


def anchors(document: Path) -> set[str]:
    """Returns anchors as GitHub creates them from headings."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("name", "said", "so", "where"), ROWS, ids=[row[0] for row in ROWS])
def test_what_a_correction_names_is_there(name: str, said: str, so: str, where: str) -> None:
    codes, links = re.findall(r"`(\w+)`", where), re.findall(r"\]\(([^)]+)\)", where)
    assert codes or links
    assert set(codes) <= {page.code for page in pages_of()}
    for link in links:
        file, _, anchor = link.partition("#")
        document = DOCS / (file or "doctor.md")
        assert document.is_file() and (not anchor or anchor in anchors(document)), link
