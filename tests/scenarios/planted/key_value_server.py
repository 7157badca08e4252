# SPDX-License-Identifier: Apache-2.0
"""Labels come from a key-value server over a raw socket; each answer takes 5 ms."""

import socket
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset
from workload import arguments, train


def answer(connection):
    with connection:
        while key := connection.recv(8):
            time.sleep(0.005)
            connection.sendall(key)


def listen(server):
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


class Labelled(Dataset):
    def __init__(self, port):
        self.port = port
        self.connection = None

    def __len__(self):
        return 16 * 70

    def __getitem__(self, index):
        if not self.port:
            return torch.tensor(index)
        if self.connection is None:
            self.connection = socket.create_connection(("127.0.0.1", self.port))
        self.connection.sendall(index.to_bytes(8, "little"))
        return torch.tensor(int.from_bytes(self.connection.recv(8), "little"))


if __name__ == "__main__":
    args = arguments()
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=listen, args=(server,), daemon=True).start()
    loader = DataLoader(Labelled(0 if args.fixed else server.getsockname()[1]), batch_size=16, num_workers=2)
    train(loader, 0.02)
