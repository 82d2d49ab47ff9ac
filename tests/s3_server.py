"""A real S3 server on loopback for tests and benchmarks, and a proxy that counts what it gives.

The server is moto's, in a process of its own. It checks no signatures, so the proxy may stand
before it. Both end with the block that started them.
"""

import http.client
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "hunter2hunter2hunter2"
PATIENCE = 60
"""Seconds for which a busy machine may start the server."""


def environment(endpoint: str) -> dict[str, str]:
    """The variables by which c4 finds the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
    }


@contextmanager
def serve_s3() -> Iterator[str]:
    """Start a server without buckets; gives its address."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, **quiet)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the S3 server did not start") from None
            time.sleep(0.05)


def make_bucket(endpoint: str) -> str:
    """Make a bucket of a new name; gives its address."""
    name = f"c4-{secrets.token_hex(4)}"
    request = urllib.request.Request(f"{endpoint}/{name}", method="PUT")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(request).close()
    return f"s3://{name}"


class Counter(ThreadingHTTPServer):
    """Hands requests on to a server, and counts them and the bytes of their answers."""

    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = endpoint.removeprefix("http://")
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.answer: Callable[[str, str], tuple[int, bytes] | None] = lambda method, path: None
        """Given method and path: an answer in the server's place, or None."""
        self.reset()

    def reset(self) -> None:
        self.requests: list[str] = []
        self.bytes_given = 0
        self.entries_given = 0
        """Entries of all lists."""

    @contextmanager
    def running(self) -> Iterator["Counter"]:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield self
        finally:
            self.shutdown()
            self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body leave together, at once.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Counter

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(f"{self.command} {self.path}")
        made = self.server.answer(self.command, self.path)
        if made is not None:
            self._give(made[0], [], made[1])
            return
        upstream = http.client.HTTPConnection(self.server.upstream)
        upstream.request(self.command, self.path, body, dict(self.headers))
        got = upstream.getresponse()
        self._give(got.status, got.getheaders(), got.read())
        upstream.close()

    def _give(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.server.bytes_given += len(data)
        self.server.entries_given += data.count(b"</Contents>") + data.count(b"</CommonPrefixes>")
        self.send_response_only(status)
        skipped = ("connection", "transfer-encoding")
        for name, value in headers:
            if name.lower() not in skipped:
                self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 as the base class asks

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Run a server until the input ends, for people who want to try things out."""
    with serve_s3() as endpoint:
        for name, value in environment(endpoint).items():
            os.write(1, f"export {name}={value}\n".encode())
        os.write(1, f"# a bucket: {make_bucket(endpoint)}\n".encode())
        sys.stdin.read()


if __name__ == "__main__":
    main()
