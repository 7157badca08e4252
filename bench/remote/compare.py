# SPDX-License-Identifier: Apache-2.0
"""`tools/bench --remote`: measures reading over a network, compared with libcurl and with other clients.

Servers, simulated latency and clients share this machine. Rates therefore show the cost of round trips and of clients'
CPU time, but not of a network; CPU time is only the client's. Rounds are interleaved, every second one backwards;
ratios are taken within a round. Writes a record in JSON, and the tables in Markdown to the same folder.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.extend(str(Path(__file__).resolve().parents[1] / name) for name in ("", "peers"))

import data as made
import environments
import launch
import report
import rounds
import servers
import tables
from launch import Skipped
from measure import commit, machine
from reading import CLIENTS, KINDS, Client, Kind, lines, read
from run import write_record
from training import LOADERS, Loader, wrong
from work import Work

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[1]
Task = Callable[[], dict[str, Any]]
_EPOCH_S = 300


class Bench:
    """Starts the servers and measures the clients."""

    def __init__(self, options: argparse.Namespace, tell: Callable[[str], None], open_until: contextlib.ExitStack):
        self.options, self.tell = options, tell
        self.folder = options.environments
        self.data = made.make(options.data / "bench_photos", self.folder / "data", options.samples)
        self.pythons = self._pythons()
        self.peer_files = self._peer_files()
        self.web = open_until.enter_context(servers.nginx(self.data.root, self.folder / "nginx"))
        self.s3: int | str
        try:
            self.s3 = open_until.enter_context(servers.seaweedfs(self.folder / "weed"))
            made.fill(self.s3, self.data, ["photos", *(name for name, why in self.peer_files.items() if not why)])
        except servers.Missing as error:
            self.s3 = str(error)
        proxy = options.programs / "latency_proxy"
        self.ports: dict[tuple[str, float], int] = {}
        for ms in options.latency_ms:
            self.ports["http", ms] = open_until.enter_context(servers.latency(proxy, self.web.port, ms))
            if isinstance(self.s3, int):
                self.ports["s3", ms] = open_until.enter_context(servers.latency(proxy, self.s3, ms))

    def _pythons(self) -> dict[str, Path | str]:
        known = environments.peers(_HERE / "peers.toml")
        found: dict[str, Path | str] = {"": Path(sys.executable)}
        for name, peer in known.items():
            self.tell(f"environment of {name}")
            try:
                found[name] = environments.ensure(peer, self.folder)
            except environments.NotInstalled as error:
                found[name] = f"not installed: {error}"
        return found

    def _peer_files(self) -> dict[str, str]:
        """Returns why files are missing, or an empty string, for each peer with its own format."""
        found = {}
        for name in ("litdata", "mosaic"):
            python = self.pythons[name]
            found[name] = python if isinstance(python, str) else made.packed_by_peer(name, python, self.data)
        return found

    def _s3(self, ms: float = 0) -> dict[str, str]:
        if isinstance(self.s3, str):
            raise Skipped(self.s3)
        return servers.keys_for(self.ports.get(("s3", ms), self.s3))

    # ---- reads ----

    def reads(self, client: Client, kind: Kind, protocol: str) -> dict[str, Any]:
        python = self.pythons[client.environment]
        if isinstance(python, str):
            raise Skipped(python)
        own = not client.environment
        command: list[object] = (
            [self.options.programs / client.program] if own else [python, _HERE / "readers" / client.program]
        )
        variables: dict[str, str] = {}
        base = {"http": f"http://127.0.0.1:{self.web.port}", "https": f"https://127.0.0.1:{self.web.tls_port}"}
        if protocol == "https":
            variables["SSL_CERT_FILE"] = str(self.web.trusted)
        if protocol == "s3":
            variables = self._s3()
            base["s3"] = f"s3://{servers.BUCKET}"
            if client.program == "curl_reads":  # does not support bucket names, and signs requests itself
                base["s3"] = f"{variables['AWS_ENDPOINT_URL']}/{servers.BUCKET}"
                variables["CURL_AWS"] = f"{servers.KEY_ID}:{servers.SECRET}"
        passes = 1 if self.options.quick else kind.passes
        asked = self.data.ranges(passes) if kind is KINDS[0] else self.data.objects(passes)
        return read(command, kind.at_once, lines(asked, base[protocol]), variables)

    # ---- epochs ----

    def epoch(self, loader: Loader, ms: float | None) -> dict[str, Any]:
        """Runs one loader with the tars or its own files; ms is None for this machine's disk."""
        python = self.pythons[loader.environment]
        if isinstance(python, str):
            raise Skipped(python)
        if why := self.peer_files.get(loader.environment, ""):
            raise Skipped(why)
        base = str(self.data.root) if ms is None else f"http://127.0.0.1:{self.ports['http', ms]}"
        variables = {"XDG_CACHE_HOME": str(self.folder / "indexes")}
        if loader.needs_s3:
            variables |= self._s3(ms or 0)
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        work = Work(
            transform="train", dtype="uint8", variant=loader.variant, folder="", made=str(scratch),
            tars=loader.tars.format(f"{base}/{self.data.shards}"),
            source=f"s3://{servers.BUCKET}/{loader.environment}",
            threads=self.options.threads, epochs=loader.later,
        )  # fmt: skip
        name = f"{loader.name}-{'local' if ms is None else f'{ms:g}'}".replace(" ", "_").replace(",", "")
        figures = launch.run(
            python, loader.adapter, work.to_json(), log=self.folder / "log" / f"{name}.log", timeout_s=_EPOCH_S,
            program=_HERE / "epoch_child.py", variables=variables,
        )  # fmt: skip
        if words := wrong(figures, self.data.samples, work):
            raise Skipped(words)
        return figures

    def tasks(self) -> dict[rounds.Key, Task]:
        todo: dict[rounds.Key, Task] = {}
        for protocol in ("http", "https", "s3"):
            for kind in KINDS:
                for client in CLIENTS:
                    if protocol in client.protocols:
                        todo[f"{kind.name}, {protocol}", client.name] = functools.partial(
                            self.reads, client, kind, protocol
                        )
        latencies: list[float | None] = [None, *self.options.latency_ms]
        for loader in LOADERS:
            for ms in latencies:
                if ms is not None or loader.is_ours:
                    todo[tables.epoch_name(ms), loader.name] = functools.partial(self.epoch, loader, ms)
        only = self.options.only
        return {key: task for key, task in todo.items() if not only or any(word in " ".join(key) for word in only)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORDS", help="only entries with one of these in the task or name"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, and a third of the reads")
    parser.add_argument("--threads", type=int, default=1, help="threads or workers per loader")
    parser.add_argument("--latency-ms", type=float, nargs="+", default=[0, 10, 50])
    parser.add_argument("--samples", type=int, default=6000, help="number of samples, in tars of 1,000")
    parser.add_argument("--json", type=Path, help="default: bench/results/<date>-<commit>-remote.json")
    parser.add_argument("--data", type=Path, default=_ROOT / "demo", help="has bench_photos")
    parser.add_argument("--environments", type=Path, default=_ROOT / "build" / "remote")
    parser.add_argument("--programs", type=Path, default=_ROOT / "build" / "bench" / "bench")
    return parser.parse_args()


def _command(options: argparse.Namespace) -> str:
    """Returns the configuration without this machine's paths."""
    words = ["tools/bench --remote", "--quick" if options.quick else f"--rounds {options.rounds}"]
    words += [f"--threads {options.threads}", "--latency-ms", *(f"{ms:g}" for ms in options.latency_ms)]
    return " ".join([*words, f"--samples {options.samples}", *(["--only", *options.only] if options.only else [])])


def compare(options: argparse.Namespace, tell: Callable[[str], None]) -> bool:
    """Measures, prints and records; returns whether every goal is met."""
    count = 1 if options.quick else options.rounds
    servers.forget_the_users_network()
    with contextlib.ExitStack() as open_until:
        bench = Bench(options, tell, open_until)
        started = time.time()
        measured, skipped = rounds.run(bench.tasks(), count, tell)
    # without the path of this checkout
    skipped = {key: reason.replace(f"{_ROOT}/", "") for key, reason in skipped.items()}
    bars = tables.bars(measured, options.latency_ms)
    heading, text = report.heading(started, count, commit(), machine()), tables.text(measured, skipped, bars)
    print(f"\n{heading}.\n\n{text}\n")
    path = options.json or _HERE.parent / "results" / f"{time.strftime('%Y-%m-%d')}-{commit() or 'unknown'}-remote.json"
    record = {
        "command": _command(options),
        "rounds": count,
        "seconds": round(time.time() - started),
        "skipped": {f"{task}, {name}": reason for (task, name), reason in skipped.items()},
        "results": {f"{task}, {name}": entries for (task, name), entries in measured.items()},
        "goals": [bar for bar in bars if bar["measured"]],
    }
    write_record("remote", path, started, record)
    path.with_suffix(".md").write_text(f"{heading}; [record]({path.name}).\n\n{text}\n")
    return all(bar["measured"] and report.is_met(bar) for bar in bars)


def main() -> int:
    options = arguments()
    try:
        return 0 if compare(options, functools.partial(print, flush=True)) else 1
    except servers.Missing as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
