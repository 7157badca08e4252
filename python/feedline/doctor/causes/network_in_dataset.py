# SPDX-License-Identifier: Apache-2.0
"""Each sample asks a server, and waits."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import SCRIPT, Case, Cause, Found, page


def _judge(case: Case) -> Iterator[Found]:
    for place in case.script.network_in_workers if case.script is not None else ():
        yield Found("warning", (f"{place.at}: {place.what} in what workers run",), about=place.about)


CAUSE = Cause(
    page(
        "network_in_dataset",
        "each sample asks a server, and waits",
        means="A call over the network in __getitem__ holds a worker for its whole round trip, and an error "
        "of the server is an error of the run.",
        recognised="A call of requests, urllib or httpx in what workers run.",
        to_do="Fetch before the run (feedline stage), or pack into shards and stream those: "
        "feedline.open('https://.../{000..146}.tar').",
        example="line 12: requests.get in what workers run.",
    ),
    turn=SCRIPT + 130,
    judge=_judge,
)
