# SPDX-License-Identifier: Apache-2.0
"""Four ranks with thousands of faults, kills, a full disk and expiring keys: no sample is wrong, lost or repeated."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import campaign
import campaign_accounts
import pytest
import small_disk
import stacks
from campaign_accounts import Line
from certificates import Authority
from fault_proxy import FATAL, HEALED, HEALED_TLS, Request
from made_s3 import KeyService, MadeS3, signature
from running_processes import HANG_S, until

FAULTS, LONG_FAULTS = 800, 10_000
SEED = 18


def test_no_sample_is_wrong_lost_or_twice(
    tmp_path: Path, authority: Authority, long_form: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = LONG_FAULTS if long_form else FAULTS
    pytest.importorskip("botocore", reason="botocore, which reads the keys of a made container, is not installed")
    report = campaign.Campaign(tmp_path / "campaign", SEED, wanted, authority).run()
    again = f"PYTHONPATH=tests/python python tests/python/remote/campaign.py --seed {SEED} --faults {wanted}"
    with capsys.disabled():
        print(f"\n{report.text()}\nagain: {again}")
    assert report.complaints == [], report.text()
    assert report.leaks == [], "what only the keys' owner may know"
    assert report.faults.total() >= wanted
    assert set(HEALED + HEALED_TLS) | {"cut_in_handshake"} <= set(report.faults)
    assert set(FATAL) & set(report.faults), "some that nobody heals"
    assert report.kills >= wanted // 300
    assert report.redone > 0 or not long_form  # a kill may follow a state immediately
    assert report.expiries >= wanted // 400 and report.refused["ExpiredToken"] > 0
    assert set(report.refused) == {"ExpiredToken"}, "all signatures are right"
    assert {error.partition(":")[0] for error in report.errors} <= {"StorageError", "DataError"}
    assert any(full in said for said in report.explained for full in ("No space left on device", "File too large"))


TRUTH = {epoch: {sample: f"{epoch}.{sample}" for sample in range(4)} for epoch in range(2)}


def logs() -> list[list[Line]]:
    """Two ranks, two samples each, in batches of one."""
    made: list[list[Line]] = [[], []]
    for rank, lines in enumerate(made):
        for step in range(4):
            epoch, sample = step // 2, 2 * rank + step % 2
            lines.append({"step": step + 1, "epoch": epoch, "samples": [[sample, f"{epoch}.{sample}"]], "t": step})
    return made


def _wrong(lines: list[Line]) -> None:
    lines[2]["samples"] = [[lines[2]["samples"][0][0], "other"]]


def _lost(lines: list[Line]) -> None:
    lines.pop()


def _twice(lines: list[Line]) -> None:
    lines[1]["samples"] = lines[0]["samples"]


def _left_out(lines: list[Line]) -> None:
    del lines[1]


def _other_when_redone(lines: list[Line]) -> None:
    lines.insert(2, {**lines[1], "samples": lines[0]["samples"]})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_wrong, "is wrong"),
        (_lost, "lost are samples [3]"),
        (_twice, "samples [2] came more than once"),
        (_left_out, "left out steps"),
        (_other_when_redone, "another batch"),
    ],
)
def test_the_accounts_find_what_is_wrong(spoil: Any, words: str) -> None:
    made = logs()
    made[0].insert(1, made[0][0])  # a step that was undone and repeated
    assert campaign_accounts.complaints(made, TRUTH) == []
    spoil(made[1])
    assert words in " ".join(campaign_accounts.complaints(made, TRUTH))


def test_recovery_is_from_a_fault_to_the_ranks_next_sample() -> None:
    made = logs()
    events = [(0.5, 0, "cut"), (1.25, 1, "cut"), (1.5, 1, "(kill -9)"), (9.0, 0, "cut")]
    assert campaign_accounts.recovery_times(made, events) == {"(kill -9)": [0.5], "cut": [0.5]}
    made[0][2:2] = [{"ended": 0, "t": 1.2}, {"began": 1, "t": 1.8}]
    events = [(1.1, 0, "cut"), (1.3, 0, "cut"), (1.3, 0, "(kill -9)"), (1.9, 0, "closed"), (3.5, 0, "cut")]
    found = campaign_accounts.recovery_times(made, events)
    assert {kind: [round(s, 3) for s in seconds] for kind, seconds in found.items()} == {"closed": [0.1], "cut": [0.1]}
    assert "longest" in campaign_accounts.table({"cut": [0.5]})


def requests(count: int) -> list[Request]:
    asked = {"range": "bytes=0-99"}
    return [Request(0, "GET", f"/data/{i % 7:03d}.tar", asked) for i in range(count)]


def test_faults_follow_from_the_seed_and_the_request() -> None:
    def drawn(seed: int, order: int) -> dict[str, list[str]]:
        plan = campaign.SeededFaults(seed, 0, HEALED, [])
        made = requests(700)
        random.Random(order).shuffle(made)
        found: dict[str, list[str]] = {}
        for request in made:
            found.setdefault(request.target, []).append(plan(request))
        return found

    assert drawn(1, 1) == drawn(1, 2), "whatever comes in between"
    assert drawn(1, 1) != drawn(2, 1)
    of_one = drawn(1, 1)["/data/003.tar"]
    assert 25 < sum(map(bool, of_one)) < 75
    rows = "".join("x" if fault else "." for fault in of_one)
    assert "xxxx" not in rows, "a client's tries are more"


def test_the_made_s3_takes_valid_keys_alone() -> None:
    keys = KeyService(1)
    s3 = MadeS3({"data/x.tar": b"content"}, keys)
    owner = keys.issued()[0]

    def asked(secret_of: Any = owner, **more: str) -> bytes:
        headers = {"host": "h", "x-amz-date": "20260101T000000Z", "x-amz-content-sha256": "e", **more}
        headers.setdefault("x-amz-security-token", owner.token)
        request = Request(0, "GET", "/data/x.tar", headers)
        scope, signed = "20260101/us-east-1/s3/aws4_request", "host;x-amz-content-sha256;x-amz-date"
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={secret_of.id}/{scope}, SignedHeaders={signed}, "
            f"Signature={signature(request, owner, scope, signed)}"
        )
        return s3(request).body

    assert asked() == b"content"
    assert b"InvalidToken" in asked(**{"x-amz-security-token": "another"})
    keys.expire()
    assert b"ExpiredToken" in asked()
    assert b"InvalidToken" in asked(keys.issued()[1])
    assert b"SignatureDoesNotMatch" in asked(keys.issued()[1], **{"x-amz-security-token": keys.issued()[1].token})
    assert b"AccessDenied" in s3(Request(0, "GET", "/data/x.tar", {})).body


HANGS = (
    "import faulthandler, signal, threading\n"
    "faulthandler.register(signal.SIGUSR1, all_threads=True)\n"
    "def waits_for_ever():\n"
    "    print('ready', flush=True)\n"
    "    threading.Event().wait()\n"
    "waits_for_ever()\n"
)


def test_a_process_that_hangs_shows_where(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    with said.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", HANGS], stderr=stderr, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        shown = stacks.of_process(process, said)
    finally:
        process.kill()
        process.communicate(timeout=HANG_S)
    assert "waits_for_ever" in shown and f"thread {process.pid}" in shown


def test_a_small_disk_is_full(tmp_path: Path) -> None:
    with small_disk.SmallDisk(tmp_path / "disk", 4) as disk:
        if disk.refusal:
            pytest.skip(f"no tmpfs can be mounted here: {disk.refusal}")
        disk.leave_free(1 << 20)
        (disk.path / "fits").write_bytes(bytes(1 << 19))
        with pytest.raises(OSError, match="No space left"):
            (disk.path / "large").write_bytes(bytes(1 << 21))
        (disk.path / "large").unlink()
        disk.leave_free(3 << 20)
        (disk.path / "large").write_bytes(bytes(2 << 20))
    until(lambda: not (tmp_path / "disk" / "fits").exists(), "it is unmounted")
