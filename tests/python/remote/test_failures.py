# SPDX-License-Identifier: Apache-2.0
"""The table of failures in docs/remote.md: every row is held by tests, and every fault of the proxy has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fault_proxy import FATAL, HEALED, HEALED_TLS

ROOT = Path(__file__).parents[3]

# The row's first cell begins with this: the faults of fault_proxy.py that are its own, which test_faults.py and
# test_campaign.py make; and tests of it alone, "Suite.Name" in C++ or "file::name" beside this one.
ROWS: dict[str, tuple[set[str], list[str]]] = {
    "returns 408, 425": (
        {"429", "503", "busy"},
        [
            "HttpStorageTest.RefusalsForNowAreTriedAgain",
            "HttpStorageTest.WaitsAsLongAsTheServerAsksAndNotForEver",
            "S3Storage.BusyServersAreTriedAgainByTheirWords",
        ],
    ),
    "refuses or closes the connection": (
        {"cut_in_head", "closed", "reset", "reset_in_body", "cut_in_record", "cut_in_handshake"},
        ["HttpStorageTest.WhoIsNotThereIsAnErrorThatNamesIt", "HttpTransportTest.RandomReadsThroughFaultsAreRight"],
    ),
    "sends nothing for 20 s": (
        {"stall", "silence", "slow_start"},
        ["HttpStorageTest.StallsEndAndTransfersThatMoveDoNot"],
    ),
    "sends invalid HTTP": (
        {"garbage", "broken_record"},
        ["test_faults.py::test_what_can_be_healed_changes_no_batch"],
    ),
    "has an untrusted certificate": (set(), ["test_servers.py::test_a_certificate_that_no_one_has_signed_is_an_error"]),
    "sends fewer bytes than announced": (
        {"cut", "cut_at_border"},
        [
            "HttpStorageTest.ABodyThatBreaksOffIsResumedWhereItBroke",
            "HttpStorageTest.ABodyMayComeInManyPieces",
            "HttpStorageTest.FewerBytesThanAskedForAreCompleted",
        ],
    ),
    "sends a Content-Length that contradicts": (
        {"too_long", "too_short"},
        ["HttpStorageTest.ALengthThatContradictsTheRangeIsTriedAgain"],
    ),
    "sends more bytes than announced": (
        {"other_range", "no_length"},
        ["HttpStorageTest.OtherBytesThanAskedForAreNeverData", "HttpStorageTest.EmptyAndWrongBodiesAreNeverData"],
    ),
    "sends the whole object": (
        {"whole_200"},
        ["HttpStorageTest.AWholeObjectInPlaceOfARangeIsCutOutWhereItsLengthIsSaid"],
    ),
    "has another version": (
        {"other_etag", "412", "empty_200"},
        [
            "HttpStorageTest.AnObjectThatChangedIsAnError",
            "HttpStorageTest.WithoutAnETagTheDateIsCompared",
            "test_many_shards.py::test_a_shard_that_changed_is_named_to_ranks_that_read_nothing_of_it_and_reindexed",
        ],
    ),
    "reports expired keys": (
        set(),
        [
            "S3Storage.KeysThatExpiredAreRenewedOnce",
            "GoogleTokens.AreSentAndFoundAgainWhereTheyAreRefused",
            "test_campaign.py::test_no_sample_is_wrong_lost_or_twice",
        ],
    ),
    "reports that the bucket is in another region": (set(), ["S3Regions.AreFollowedOnceForABucket"]),
    "sends bytes that do not match its checksum": (
        set(),
        [
            "Checksums.DamageUnderWayIsReadAgain",
            "Checksums.ThatDifferAreAnErrorOfBothSumsAfterASecondRead",
            "test_verification.py::test_damage_under_way_is_fetched_again",
        ],
    ),
    "returns 404, 403": (set(), ["HttpStorageTest.RefusalsForGoodAreErrorsAtOnce", "S3Storage.RefusalsSayWhatToDo"]),
    "redirects": (set(), ["HttpStorageTest.RedirectsAreFollowedWithoutSecretsAndNotForEver"]),
}


@pytest.fixture(scope="module")
def table() -> dict[str, str]:
    """What the server does -> what Feedline does."""
    text = (ROOT / "docs/remote.md").read_text().partition("## Errors and retries")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return dict(rows[2:])


def row_of(begin: str, table: dict[str, str]) -> str:
    found = [first for first in table if first.startswith(begin)]
    assert len(found) == 1, f"docs/remote.md has {len(found)} rows that begin with '{begin}'"
    return found[0]


def test_every_row_is_held_by_tests(table: dict[str, str]) -> None:
    assert sorted(row_of(begin, table) for begin in ROWS) == sorted(table), "rows without a test; name them in ROWS"
    sources = "\n".join(path.read_text() for path in (ROOT / "src/storage").rglob("*_test.cpp"))
    declared = {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", sources, re.MULTILINE)}
    for _, tests in ROWS.values():
        assert tests
        for name in tests:
            file, _, function = name.partition("::")
            is_there = (
                f"\ndef {function}(" in (Path(__file__).parent / file).read_text() if function else name in declared
            )
            assert is_there, f"there is no test {name}"


def test_every_fault_of_the_proxy_has_a_row_that_tells_its_end(table: dict[str, str]) -> None:
    own = [fault for faults, _ in ROWS.values() for fault in faults]
    assert sorted(own) == sorted({*HEALED, *HEALED_TLS, *FATAL, "cut_in_handshake"})
    for begin, (faults, _) in ROWS.items():
        end = table[row_of(begin, table)]
        if faults & set(FATAL):
            assert faults <= set(FATAL) and end.startswith("an error"), begin
        elif faults:
            assert not end.startswith("an error"), begin
