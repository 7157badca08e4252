# SPDX-License-Identifier: Apache-2.0
"""Each sample sends a request to a server and waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from ...rules import SCRIPT, Analysis, Cause, Found, page


def _evaluate(analysis: Analysis) -> Iterator[Found]:
    for location in analysis.script.network_in_workers if analysis.script is not None else ():
        yield Found("warning", (f"{location.at}: {location.what} in code that workers run",), about=location.about)


CAUSE = Cause(
    page(
        "network_in_dataset",
        "each sample sends a request to a server and waits for it",
        means="A network call in __getitem__ blocks a worker for its whole round trip, and a server "
        "error fails the run.",
        recognised="Code that workers run calls requests, urllib or httpx.",
        to_do="Download the data before the run (feedline stage), or pack it into shards and stream them: "
        "feedline.open('https://.../{000..146}.tar').",
        example="line 12: requests.get in code that workers run.",
    ),
    priority=SCRIPT + 130,
    evaluate=_evaluate,
)
