# SPDX-License-Identifier: Apache-2.0
"""tools/site_pages.py and tools/site_docstrings.py: pages that GitHub and the site's Markdown read alike."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, over a checkout of two documents."""
    module = loaded("site_pages")
    monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    for folder in ("docs/decisions", "src", "bench"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Top\n\nSee [the guide](docs/guide.md#how) and [why](docs/decisions).\n")
    (tmp_path / "docs" / "guide.md").write_text(
        "# Guide\n\n[code](../src/) [of it](../src/a.cpp) [bench](../bench/r.md)\n"
    )
    (tmp_path / "docs" / "decisions" / "0001-one.md").write_text("# 0001: `one` thing\n")
    (tmp_path / "docs" / "site.css").write_text("a {}\n")
    (tmp_path / "docs" / "site.js").write_text("let a;\n")
    (tmp_path / "src" / "README.md").write_text("# Sources\n")
    (tmp_path / "src" / "a.cpp").write_text("int a;\n")
    (tmp_path / "bench" / "r.md").write_text("# Result\n\n[guide](../docs/guide.md)\n")
    return module


def test_pages_are_gathered_with_all_that_they_link_to(pages: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert (
        pages.gather(out) == 10
        and (out / "docs/causes.md").exists()
        and (out / "docs/site.css").exists()
        and (out / "docs/site.js").exists()
    )
    assert "(docs/decisions/index.md)" in (out / "README.md").read_text()
    assert (out / "docs/decisions/index.md").read_text() == "# Decisions\n\n- [0001: `one` thing](0001-one.md)\n"
    assert "(../src/README.md) [of it](../src/a.cpp)" in (out / "docs/guide.md").read_text()
    assert (out / "src/a.cpp").read_text() == "int a;\n"
    assert (out / "bench/r.md").read_text() == "# Result\n\n[guide](../docs/guide.md)\n"


def test_no_page_of_the_checkout_has_a_dead_link() -> None:
    module = loaded("site_pages")
    root = TOOLS.parent
    files = [
        root / "README.md",
        *(one for folder in ("docs", "bench", "tools") for one in (root / folder).rglob("*.md")),
    ]
    dead = []
    for file in files:
        text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
        dead += [f"{file}: {one[2]}" for one in module.LINK.finditer(text) if not (file.parent / one[2]).exists()]
    assert not dead


def test_help_and_causes_need_no_compiled_engine(tmp_path: Path) -> None:
    """Like in a fresh clone."""
    sources = tmp_path / "python"
    shutil.copytree(TOOLS.parent / "python", sources, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    code = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import site_pages; "
    code += "print(site_pages.causes(), site_pages.help_of_verbs())"
    # Both in processes of their own: click keeps the help option of a command's first use, by other tests.
    pages = []
    for path in (sources, TOOLS.parent / "python"):
        environment = {**os.environ, "PYTHONPATH": str(path)}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert ran.returncode == 0, ran.stderr
        pages.append(ran.stdout)
    assert pages[0] == pages[1] and "-h, --help" in pages[0] and "# Findings" in pages[0]


def test_lists_are_written_as_both_read_them(pages: Any) -> None:
    text = "**Seen**\n- one\n  - in it\n    more\n- two\n\nend\n  indented\n```\nx\n- no list\n  - nor here\n```\n"
    lists = pages.outside_fences(text, pages.lists_apart)
    assert lists == (
        "**Seen**\n\n- one\n    - in it\n        more\n- two\n\nend\n  indented\n```\nx\n- no list\n  - nor here\n```\n"
    )


def test_numbered_notes_are_no_links_by_name(pages: Any, tmp_path: Path) -> None:
    note = tmp_path / "docs" / "note.md"
    note.write_text("[1] [Shuffling](https://example.org/a)\n")
    assert pages.page(note) == "\\[1\\] [Shuffling](https://example.org/a)\n"


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt install chromium)")
def test_a_page_from_a_disk_asks_its_worker_without_anything_fetched(tmp_path: Path) -> None:
    shim = (TOOLS.parent / "docs" / "iframe-worker.js").as_uri()
    (tmp_path / "worker.js").write_text('addEventListener("message", (e) => postMessage(`${e.data} found`));')
    script = 'const worker = new Worker("worker.js"); worker.postMessage("shuffle");'
    shows = 'worker.addEventListener("message", (e) => { document.title = e.data; });'
    page = tmp_path / "index.html"
    page.write_text(f'<head><script src="{shim}"></script></head><body><script>{script}{shows}</script></body>')
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "<title>shuffle found</title>" in seen.stdout


def test_docstrings_become_markdown_with_links(monkeypatch: pytest.MonkeyPatch) -> None:
    griffe = ModuleType("griffe")
    griffe.Extension = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "griffe", griffe)
    module = loaded("site_docstrings")
    assert {"Dataset", "open", "DataLoader"} <= module.public_names()
    text = (
        "Made by :meth:`Dataset.loader`, see :func:`feedline.open` and :mod:`feedline.loader.statistics`.\n\n"
        "    Such as::\n\n        with x:\n            y\n\n    It ends."
    )
    assert module.as_markdown(text, {"Dataset", "open"}) == (
        "Made by [`Dataset.loader`][feedline.Dataset.loader], see [`feedline.open`][feedline.open] and "
        "`feedline.loader.statistics`.\n\n"
        "    Such as:\n\n    ```python\n    with x:\n        y\n    ```\n\n    It ends."
    )
