"""A server under load: started as a child, found by its port, its CPU time read from outside."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from figures import HERE, Figure
from processes import cpu_seconds, ended


def listener() -> socket.socket:
    """A socket on a free port of this machine."""
    return socket.create_server(("127.0.0.1", 0), backlog=2048)


def announce(listening: socket.socket, **facts: str) -> None:
    """Report the port to the process that started this one."""
    print(json.dumps({"port": listening.getsockname()[1], **facts}), flush=True)


@dataclass
class Server:
    """A running server."""

    pid: int
    port: int
    key: str

    def load(  # noqa: PLR0913 - the options of a run
        self,
        name: str,
        *,
        path: str,
        body: str,
        status: int,
        requests: int,
        each: int = 1,
        connections: int = 64,
    ) -> Figure:
        """Time for a number of requests, counted in messages (``each`` per request)."""
        options = {
            "port": self.port,
            "path": path,
            "key": self.key,
            "body": body,
            "status": status,
            "requests": requests,
            "connections": connections,
        }
        before = cpu_seconds(self.pid)
        command = [sys.executable, "-m", "http_load"]
        for option, given in options.items():
            command += [f"--{option}", str(given)]
        ran = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, check=True, text=True)
        seconds = json.loads(ran.stdout)["seconds"]
        return Figure(name, requests * each, seconds, cpu_seconds(self.pid) - before)


@contextmanager
def serving(module: str) -> Iterator[Server]:
    """Run a module of this folder that announces itself."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            facts = json.loads(child.stdout.readline())
            yield Server(child.pid, facts["port"], facts.get("key", ""))
        finally:
            child.terminate()
            ended(child)
