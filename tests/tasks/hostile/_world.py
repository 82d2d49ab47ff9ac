"""The world outside the sandbox, with something in it to reach."""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class World:
    """Files, servers and an environment to reach, open to every user."""

    values: dict[str, object]
    secret: Path
    target: Path
    servers: list[socket.socket] = field(default_factory=list)

    def touched(self) -> list[str]:
        """What somebody has reached."""
        found = ["a file was written"] if self.target.exists() else []
        if not self.secret.exists() or self.secret.read_text() != "secret":
            found.append("the secret was changed")
        for server in self.servers:
            server.setblocking(False)
            with suppress(BlockingIOError):
                datagrams = server.type == socket.SOCK_DGRAM
                server.recvfrom(1) if datagrams else server.accept()
                found.append(f"a connection to {server.getsockname()}")
        return found


@contextmanager
def outside_world() -> Iterator[World]:
    """A world that lasts as long as the block."""
    with ExitStack() as stack:
        tcp, unix, abstract = (
            stack.enter_context(socket.socket(family))
            for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_UNIX)
        )
        udp = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
        # Not pytest's folder: that is closed to other users, and too long for a socket's name.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        secret, target, door = (folder / name for name in ("secret", "target", "door"))
        secret.write_text("secret")
        for server in (tcp, udp):
            server.bind(("127.0.0.1", 0))
        unix.bind(str(door))
        port = tcp.getsockname()[1]
        abstract.bind(f"\0c4-test-{port}")
        for server in (tcp, unix, abstract):
            server.listen()
        for path in (folder, secret, door):
            path.chmod(0o777)
        home = Path.home()
        # The interpreter may live there; the way to it is visible, and nothing beside it.
        ours = [Path(path) for path in (sys.base_prefix, *sys.path) if path]
        shown = {path.relative_to(home).parts[:1] for path in ours if path.is_relative_to(home)}
        values: dict[str, object] = {
            "secret": secret,
            "target": target,
            "home": [path.name for path in home.iterdir() if (path.name,) not in shown],
            "home_path": home,
            "tcp": port,
            "udp": udp.getsockname()[1],
            "unix": door,
            "parent": os.getpid(),
        }
        yield World(values, secret, target, [tcp, udp, unix, abstract])
