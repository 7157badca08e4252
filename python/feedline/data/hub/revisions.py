# SPDX-License-Identifier: Apache-2.0
"""The commits of the Hub's datasets that a dataset was created from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..recorded_calls import Recorded

_PINNED = re.compile(r"hf://datasets/[^/@]+/[^/@]+@[0-9a-f]{40}(?=/|$)")


def revisions_of(dataset: Recorded) -> list[str]:
    """Returns ``hf://datasets/ORG/NAME@COMMIT`` for each dataset on the Hub, sorted."""
    return sorted(set(_found_in(dataset)))


def _found_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if found := _PINNED.match(value):
            yield found[0]
    elif isinstance(value, Recorded):
        for call in value._calls:
            yield from _found_in(call.arguments)
            yield from _found_in(call.options)
    elif isinstance(value, Mapping):
        for key, one in value.items():  # feedline.mix() accepts weights by dataset
            yield from _found_in(key)
            yield from _found_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _found_in(one)
