# SPDX-License-Identifier: Apache-2.0
"""The rule for deprecated names: a warning with the replacement, for two minor versions."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import feedline
from feedline import version

PACKAGE = Path(feedline.__file__).parent
CMAKE = Path(__file__).parents[2] / "CMakeLists.txt"


def caller_of_a_deprecated_function() -> None:
    version.deprecated("feedline.x", "feedline.y", since="0.3")


def test_the_warning_names_the_replacement_and_the_line_that_uses_it() -> None:
    text = r"feedline\.x is deprecated since Feedline 0\.3 and may be removed in 0\.5: use feedline\.y"
    with pytest.warns(FutureWarning, match=text) as caught:
        caller_of_a_deprecated_function()
    assert caught[0].filename == __file__


def test_former_modules_of_diagnose_warn() -> None:
    for name in [name for name in sys.modules if name.startswith("feedline.diagnose.judging")]:
        del sys.modules[name]
    with pytest.warns(FutureWarning, match=r"use feedline\.diagnose\.rules"):
        importlib.import_module("feedline.diagnose.judging")
    case = importlib.import_module("feedline.diagnose.judging.case")
    assert case.Case is importlib.import_module("feedline.diagnose.rules.analysis").Analysis


def test_nothing_is_kept_longer_than_the_rule_requires() -> None:
    """When this fails, remove the deprecated names."""
    found = re.search(r"project\(feedline VERSION (\d+)\.(\d+)", CMAKE.read_text())
    assert found is not None
    now = (int(found[1]), int(found[2]))
    uses = [
        (path.name, since)
        for path in PACKAGE.rglob("*.py")
        for since in re.findall(r"^\s*deprecated\(.*?since=\"([\d.]+)\"", path.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert uses, "no deprecated name was found"
    for name, since in uses:
        major, minor = map(int, version.removal_of(since).split("."))
        assert now < (major, minor), f"{name}: may be removed since {major}.{minor}"
