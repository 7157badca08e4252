# SPDX-License-Identifier: Apache-2.0
"""Samples come from a server on this machine that takes 15 ms for each; nothing is read from a file."""

import os
import socket
import threading
import time

import torch
from work import Samples, gpu_step


def serve(listening):
    def answer(one):
        while one.recv(1):
            time.sleep(0.015)
            one.send(b"1")

    while True:
        threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()


class Ask:
    def __init__(self, address):
        self.address, self.connection, self.process = address, None, 0

    def __call__(self, index):
        if self.process != os.getpid():
            self.connection, self.process = socket.create_connection(self.address), os.getpid()
        self.connection.send(b"?")
        return torch.tensor(self.connection.recv(1)[0] + index)


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
    for _batch in torch.utils.data.DataLoader(Samples(480, Ask(listening.getsockname())), batch_size=8, num_workers=2):
        gpu_step(2)
