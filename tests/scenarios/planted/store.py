# SPDX-License-Identifier: Apache-2.0
"""A small HTTP store with a latency, in a separate process."""

import contextlib
import http.server
import subprocess
import sys
import time

# A .npy file: 64 x 64 zeros of float32.
HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (64, 64), }"
BODY = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + HEADER.ljust(117) + b"\n" + bytes(4 * 64 * 64)


@contextlib.contextmanager
def serve(latency):
    """Serve /0.npy to /7.npy; each answer is late by `latency` seconds. Yields the address."""
    process = subprocess.Popen(
        [sys.executable, "-S", __file__, str(latency)], stdout=subprocess.PIPE, text=True, env={}
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def main():
    latency = float(sys.argv[1])

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            time.sleep(latency)
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
