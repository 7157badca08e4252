# SPDX-License-Identifier: Apache-2.0
"""The fault campaign: four ranks train from S3, and everything goes wrong that may.

Answers are spoiled (fault_proxy.py), ranks are killed with SIGKILL and started again, the disk of their cache is full,
and their keys expire. Afterwards the logs of all ranks are held against what local files give (campaign_accounts.py).

What happens to a request follows from the seed, the request and how often it was made; kills, expiries and the room on
the disk follow from the seed and the number of faults so far. The order of requests is the threads'. By hand:

    PYTHONPATH=tests/python python tests/python/remote/campaign.py --seed 18 --faults 2000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import campaign_accounts
import campaign_rank
import made_data
import small_disk
import stacks
from campaign_accounts import Event, Line
from certificates import Authority
from fault_proxy import FATAL, HEALED, HEALED_TLS, FaultProxy, Request, proxied
from made_s3 import REGION, KeyService, MadeS3
from running_processes import HANG_S

WORLD = campaign_rank.WORLD
SHARDS, SAMPLES = 24, 571  # which no number of ranks divides
_BUCKET = "data"
_LARGE_SHARDS = 3  # one of this many shards is larger than _FILE_LIMIT
_FILE_LIMIT = 1 << 20
_DISK_MIB = 12  # not all shards fit

_SHARE = 0.5  # share of requests for shards that get a fault
_SHARE_FATAL = 0.02  # of faults
_SHARE_OF_HANDSHAKES = 0.1
_MOST_IN_A_ROW = 3  # of one range
_FAULTS_BETWEEN_KILLS = 250
_FAULTS_BETWEEN_EXPIRIES = 350
_FOREIGN = ("AWS_", "FEEDLINE_", "CURL_CA_BUNDLE", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_LIMITS = {"FEEDLINE_HTTP_STALL_MS": "1000", "FEEDLINE_HTTP_TRIES": "40"}


def make_shards(folder: Path) -> list[Path]:
    """Photos, numbers and bytes, in small shards and large ones."""
    drawn = random.Random(7)
    photos = [made_data.encoded(made_data.photo(i, 40 + i, 30 + i)) for i in range(20)]
    paths = []
    for shard in range(SHARDS):
        most = 180_000 if shard % _LARGE_SHARDS == 0 else 36_000
        members = []
        for sample in range(shard * SAMPLES // SHARDS, (shard + 1) * SAMPLES // SHARDS):
            members += [
                (f"{sample:04d}.jpg", photos[sample % len(photos)]),
                (f"{sample:04d}.raw", drawn.randbytes(drawn.randrange(most // 3, most))),
                (f"{sample:04d}.cls", str(sample).encode()),
            ]
        paths.append(made_data.write_tar(folder / f"{shard:03d}.tar", members))
    return paths


def truth(shards: list[Path], epochs: int) -> dict[int, dict[int, str]]:
    """Reads local files in one process, in other batches; returns epoch -> sample -> digest."""
    found: dict[int, dict[int, str]] = {}
    data = campaign_rank.chain(shards)
    with campaign_rank.loader_of(data, 16, 0, 1) as loader:
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            found[epoch] = {s: digest for batch in loader for s, digest in campaign_rank.digests(loader, batch)}
    return found


class SeededFaults:
    """The faults in one rank's requests for shards, and their times."""

    def __init__(self, seed: int, rank: int, kinds: tuple[str, ...], events: list[Event]) -> None:
        self._seed, self._rank, self._kinds, self._events = f"{seed} {rank}", rank, kinds, events
        self._asked: Counter[tuple[str, str]] = Counter()
        self._in_a_row: Counter[tuple[str, str]] = Counter()

    def __call__(self, request: Request) -> str:
        location = request.place
        if not request.target.endswith(".tar"):
            return ""
        self._asked[location] += 1
        drawn = random.Random(f"{self._seed} {location} {self._asked[location]}")
        if self._in_a_row[location] >= _MOST_IN_A_ROW or drawn.random() >= _SHARE:
            self._in_a_row[location] = 0
            return ""
        self._in_a_row[location] += 1
        fault = drawn.choice(FATAL if drawn.random() < _SHARE_FATAL else self._kinds)
        self._events.append((time.monotonic(), self._rank, fault))
        return fault

    def handshake(self, number: int) -> bool:
        return random.Random(f"{self._seed} connection {number}").random() < _SHARE_OF_HANDSHAKES


class Rank:
    """A rank's successive processes, and their log."""

    def __init__(self, number: int, folder: Path, arguments: list[str], environment: dict[str, str]) -> None:
        self.number, self.lines = number, list[Line]()
        self.grew_at = time.monotonic()
        self.ended = -1  # the last epoch
        self._log, self.stderr = folder / f"{number}.log", folder / f"{number}.stderr"
        self._command = [sys.executable, campaign_rank.__file__, arguments[0], str(folder), str(number), *arguments[1:]]
        self._environment = environment
        self._read = 0
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        self.grew_at = time.monotonic()
        with self.stderr.open("ab") as said:
            self.process = subprocess.Popen(self._command, env=self._environment, stderr=said, stdout=said)
        return self.process

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def look(self) -> None:
        """Reads what was logged since the last call. Incomplete lines are not read, because they may be removed."""
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read)
            grown = log.read()
        grown = grown[: grown.rfind(b"\n") + 1]
        if not grown:
            return
        self._read += len(grown)
        lines = [json.loads(text) for text in grown.splitlines()]
        self.lines += lines
        self.ended = max([self.ended, *(line["ended"] for line in lines if "ended" in line)])
        if any("error" not in line for line in lines):  # endless errors are not progress
            self.grew_at = time.monotonic()


@dataclass
class Report:
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    kills: int = 0
    expiries: int = 0
    epochs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)  # that ranks had, and after which they continued
    redone: int = 0  # steps that a kill or an error has undone
    explained: set[str] = field(default_factory=set)  # errors of ranks' caches
    leaks: list[str] = field(default_factory=list)
    no_disk: str = ""
    complaints: list[str] = field(default_factory=list)
    times: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0

    def text(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        lines = [
            f"seed {self.seed}: {self.faults.total()} faults of {self.requests} requests, {self.kills} kills, "
            f"{self.expiries} expiries of keys, in {self.seconds:.0f} s",
            f"{len(self.errors)} errors, {self.redone} steps redone; {self.epochs} epochs of {SAMPLES} samples over "
            f"{WORLD} ranks: {len(self.complaints)} complaints",
            f"faults: {kinds}",
            campaign_accounts.table(self.times),
            *self.complaints[:20],
        ]
        return "\n".join(lines + ([f"no small disk: {self.no_disk}"] if self.no_disk else []))


class Hangs(AssertionError):
    """A rank has delivered no sample for a long time."""


class Campaign:
    """`run()` once."""

    def __init__(self, folder: Path, seed: int, faults: int, authority: Authority, hang_s: float = 2 * HANG_S) -> None:
        self._folder, self._wanted, self._authority, self._hang_s = folder, faults, authority, hang_s
        self._random = random.Random(seed)
        self._events: list[Event] = []
        self._keys = KeyService(seed)
        self._ranks: list[Rank] = []
        self._proxies: list[FaultProxy] = []
        self._granted, self._is_last = 0, False
        self._killed_early: dict[int, int] = {}  # rank -> number of requests to its proxy by then
        self._next_kill, self._next_expiry = _FAULTS_BETWEEN_KILLS, _FAULTS_BETWEEN_EXPIRIES
        self.report = Report(seed)

    def run(self) -> Report:
        began = time.monotonic()
        (self._folder / "shards").mkdir(parents=True)
        shards = make_shards(self._folder / "shards")
        s3 = MadeS3({f"{_BUCKET}/{path.name}": path.read_bytes() for path in shards}, self._keys)
        with ExitStack() as stack:
            disk = stack.enter_context(small_disk.SmallDisk(self._folder / "disk", _DISK_MIB))
            self.report.no_disk = disk.refusal
            stack.callback(self._end_ranks)  # before the disk is removed
            key_server = stack.enter_context(proxied(self._keys))
            for rank in range(WORLD):
                self._proxies.append(self._proxy(stack, rank, s3, shards))
            self._grant(0)
            self._ranks += [self._rank(number, disk, key_server) for number in range(WORLD)]
            self._disturb_until_done(disk)
        report = self.report
        report.refused = s3.refused
        report.faults = sum((proxy.faults for proxy in self._proxies), Counter())
        report.requests = sum(proxy.requests for proxy in self._proxies)
        self._settle(shards)
        report.seconds = time.monotonic() - began
        return report

    def _proxy(self, stack: ExitStack, rank: int, s3: MadeS3, shards: list[Path]) -> FaultProxy:
        encrypted = rank % 2 == 1
        borders = {f"/{_BUCKET}/{path.name}": _members(path) for path in shards}
        plan = SeededFaults(self.report.seed, rank, HEALED + (HEALED_TLS if encrypted else ()), self._events)
        return stack.enter_context(
            proxied(
                s3, plan, tls=self._authority.context() if encrypted else None, handshakes=plan.handshake,
                borders=lambda target: borders.get(target, []), seed=self.report.seed + rank,
            )
        )  # fmt: skip

    def _rank(self, number: int, disk: small_disk.SmallDisk, key_server: FaultProxy) -> Rank:
        """Two of the four ranks have caches: on a full disk, and with a limit on file sizes."""
        arguments = [f"s3://{_BUCKET}/{{000..{SHARDS - 1:03d}}}.tar"]
        if number >= 2:
            arguments += ["--cache", str(disk.path / "cache")]
        if number == 3 or (number == 2 and disk.refusal):
            arguments += ["--file-limit", str(_FILE_LIMIT)]
        here = Path(__file__).parent
        paths = [str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]
        own = {
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "XDG_CACHE_HOME": str(self._folder / "indexes"),
            "AWS_ENDPOINT_URL": self._proxies[number].address,
            "AWS_REGION": REGION,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{key_server.address}/keys",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": str(self._folder / "none"),
            "AWS_CONFIG_FILE": str(self._folder / "none"),
            "SSL_CERT_FILE": str(self._authority.trusted),
            **_LIMITS,
        }
        inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith(_FOREIGN)}
        return Rank(number, self._folder, arguments, {**inherited, **own})

    def _faults(self) -> int:
        return sum(proxy.faults.total() for proxy in self._proxies)

    def _grant(self, epoch: int) -> None:
        self._granted, self._is_last = epoch, self._faults() >= self._wanted
        unfinished = self._folder / "granted.unfinished"
        unfinished.write_text(f"{epoch} end" if self._is_last else str(epoch))
        unfinished.rename(self._folder / "granted")

    def _disturb_until_done(self, disk: small_disk.SmallDisk) -> None:
        while any(rank.process.poll() is None for rank in self._ranks) or not self._is_last:
            for rank in self._ranks:
                rank.look()
                self._watch(rank)
            if not self._is_last:
                if all(rank.ended >= self._granted for rank in self._ranks):
                    self._grant(self._granted + 1)
                self._expire_keys()
                self._kill(disk)
            time.sleep(0.01)
        for rank in self._ranks:
            rank.look()

    def _watch(self, rank: Rank) -> None:
        status = rank.process.poll()
        assert status in (None, 0), f"rank {rank.number} ended with {status}:\n{_tail(rank.stderr)}"
        if status == 0:
            assert self._is_last, f"rank {rank.number} ended by itself"
            return
        if rank.ended >= self._granted and not self._is_last:
            rank.grew_at = time.monotonic()  # it waits for the other ranks
        if time.monotonic() - rank.grew_at > self._hang_s:
            raise Hangs(
                f"rank {rank.number} has given no sample for {self._hang_s} s: "
                + stacks.of_process(rank.process, rank.stderr)
            )

    def _expire_keys(self) -> None:
        if self._faults() < self._next_expiry:
            return
        self._next_expiry += _FAULTS_BETWEEN_EXPIRIES
        self._keys.expire()
        self.report.expiries += 1
        now = time.monotonic()
        self._events += [(now, rank.number, "(keys expire)") for rank in self._ranks]

    def _kill(self, disk: small_disk.SmallDisk) -> None:
        """After every so many faults; every third time once more, soon after the restart."""
        for number, requests in list(self._killed_early.items()):
            if self._proxies[number].requests > requests:
                del self._killed_early[number]
                self._kill_rank(self._ranks[number])
        if self._faults() < self._next_kill:
            return
        self._next_kill += _FAULTS_BETWEEN_KILLS
        rank = self._ranks[self._random.randrange(WORLD)]
        free = self._random.choice((0, 20_000, 700_000, 3_000_000, 9_000_000))
        self._kill_rank(rank)
        if self.report.kills % 3 == 0:
            self._killed_early[rank.number] = self._proxies[rank.number].requests
        small_disk.remove_copies(disk.path / "cache")
        disk.leave_free(free)

    def _kill_rank(self, rank: Rank) -> None:
        rank.kill()
        self._events.append((time.monotonic(), rank.number, "(kill -9)"))
        self.report.kills += 1
        rank.start()

    def _end_ranks(self) -> None:
        for rank in self._ranks:
            rank.kill()

    def _settle(self, shards: list[Path]) -> None:
        report = self.report
        report.epochs = self._granted + 1
        logs = [rank.lines for rank in self._ranks]
        report.complaints = campaign_accounts.complaints(logs, truth(shards, report.epochs))
        for rank, lines in enumerate(logs):
            done = [line["step"] for line in lines if "samples" in line]
            report.redone += len(done) - len(set(done))
            for line in lines:
                if "error" in line:
                    report.errors.append(f"{line['error']}: {line['said']}")
                    self._events.append((line["t"], rank, "(an error)"))
                report.explained |= {part for part in line.get("explained", "").splitlines() if "cache '" in part}
        report.times = campaign_accounts.recovery_times(logs, self._events)
        report.leaks = self._leaks()

    def _leaks(self) -> list[str]:
        """Files with a secret that only the keys' owner knows."""
        secrets = [text.encode() for keys in self._keys.issued() for text in (keys.secret, keys.token)]
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        return [str(path) for path in files if any(secret in path.read_bytes() for secret in secrets)]


def _members(path: Path) -> list[int]:
    with tarfile.open(path) as tar:
        return [member.offset for member in tar]


def _tail(path: Path) -> str:
    return path.read_bytes()[-8000:].decode(errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--faults", type=int, default=2000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Campaign(Path(folder) / "campaign", given.seed, given.faults, Authority(Path(folder))).run()
    print(report.text())
    for error in sorted(set(report.errors)):
        print(error)
    print("\n".join(sorted(report.explained)))
    return 1 if report.complaints or report.leaks else 0


if __name__ == "__main__":
    sys.exit(main())
