# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster as network namespaces of this machine: each has an address, and a switch connects them.
Requires root.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Node:
    """A namespace with the network card `net0`. It has this machine's files and processors, and no other network."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address

    def start(self, *command: str, log: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with open(log, "ab") as file:
            words = ["ip", "netns", "exec", self.name, *command]
            return subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT, env=environment)

    def lose(self) -> None:
        """Like a power cut: the node sends nothing more, not even the closing of its connections."""
        ip("-n", self.name, "link", "set", "net0", "down")
        self.end()

    def end(self) -> None:
        for process in ip("netns", "pids", self.name).split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)


@contextmanager
def cluster(count: int) -> Iterator[list[Node]]:
    """`count` nodes that can reach each other, named after this process. Their programs are killed at the end."""
    switch = f"feedline-{os.getpid()}-switch"
    nodes = [Node(f"feedline-{os.getpid()}-{index}", f"10.77.0.{index + 1}") for index in range(count)]
    made: list[str] = []
    try:
        for name in [switch, *(node.name for node in nodes)]:
            ip("netns", "add", name)
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", switch, "link", "add", "bridge0", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge0", "up")
        for index, node in enumerate(nodes):
            port = f"port{index}"
            ip("-n", node.name, "link", "add", "net0", "type", "veth", "peer", "name", port, "netns", switch)
            ip("-n", switch, "link", "set", port, "master", "bridge0", "up")
            ip("-n", node.name, "address", "add", f"{node.address}/24", "dev", "net0")
            ip("-n", node.name, "link", "set", "net0", "up")
        yield nodes
    finally:
        for node in nodes:
            if node.name in made:
                node.end()
        for name in made:
            ip("netns", "delete", name)
