# SPDX-License-Identifier: Apache-2.0
"""Objects that a server does not have, truncates or changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import range_server

import feedline
from messages.expressions import functions
from messages.samples import Samples


@contextmanager
def _served(s: Samples, fault: str = "") -> Iterator[Callable[[str], str]]:
    """Serves `here`; replaces the server's port in messages."""
    with range_server.serving(s.root / "here") as server:
        server.fault = lambda number, path: fault
        try:
            yield server.url
        except feedline.Error as error:
            raise type(error)(str(error).replace(server.url("")[:-1], "http://HOST")) from None


def tar_of(s: Samples) -> Path:
    return s.write_tar(("a.jpg", s.jpeg), ("a.cls", "0"))


def _an_object_that_is_missing(s: Samples) -> None:
    with _served(s) as url:
        feedline.open(url("none.tar"))


def _a_folder_without_a_listing(s: Samples) -> None:
    with _served(s) as url:
        feedline.open(url("train/"))


def _a_damaged_listing(s: Samples) -> None:
    s.write("train/feedline-listing.txt", "no listing")
    with _served(s) as url:
        feedline.open(url("train/"))


def _a_listing_that_is_truncated(s: Samples) -> None:
    from feedline.pack.listing import write_listing

    s.write("train/a/1.jpg", s.jpeg)
    write_listing("here/train")
    text = Path("here/train/feedline-listing.txt").read_text()
    Path("here/train/feedline-listing.txt").write_text(text[: len(text) // 2])
    with _served(s) as url:
        feedline.open(url("train/"))


def _an_answer_with_another_range(s: Samples) -> None:
    tar_of(s)
    with _served(s, "wrong_range") as url:
        feedline.open(url("a.tar"))


def _text_instead_of_a_tar(s: Samples) -> None:
    s.write("a.tar", "text " * 300)
    with _served(s) as url:
        feedline.open(url("a.tar"))


def _an_object_that_changed(s: Samples) -> None:
    tar_of(s)
    with range_server.serving(s.root / "here") as server:
        dataset = feedline.open(server.url("a.tar"), index="here/index")
        server.fault = lambda number, path: "changed"
        try:
            dataset[0]
        except feedline.Error as error:
            raise type(error)(str(error).replace(server.url("")[:-1], "http://HOST")) from None


def _a_table_of_a_remote_folder_with_a_local_path(s: Samples) -> None:
    s.write("t.csv", "image,label\n/data/a.jpg,0\n")
    with _served(s) as url:
        feedline.open(url("t.csv"))[0]


def _tokens_on_a_server(s: Samples) -> None:
    s.write("t.bin", bytes(64))
    with _served(s) as url:
        feedline.tokens(url("t.bin"), window=2, dtype="uint16")


def _pixels_on_a_server(s: Samples) -> None:
    feedline.pack_pixels(s.small, "here/a.pixels")
    with _served(s) as url:
        feedline.open(url("a.pixels"))


def _credentials_in_a_url_to_write(s: Samples) -> None:
    s.images.pack("s3://user:secret@bucket/out")


CASES = functions(globals())
