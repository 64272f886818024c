"""The twin of Resend as a separate process: it outlives its callers, however they end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx

from support import resend_twin
from support.resend_twin import HOST, Delivery

_PATIENCE_S = 30.0


@contextmanager
def running_twin() -> Iterator[tuple[str, str]]:
    """Its address, and its valid key."""
    key = f"re_{uuid4().hex}"
    started = subprocess.Popen(
        [sys.executable, str(Path(resend_twin.__file__))],
        env=os.environ | {"RESEND_API_KEY": key},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with started as twin:
        assert twin.stdin is not None
        assert twin.stdout is not None
        try:
            yield f"http://{HOST}:{int(twin.stdout.readline())}", key
        finally:
            twin.stdin.close()
            twin.wait(_PATIENCE_S)


def delivered_by(url: str) -> list[Delivery]:
    """Deliveries of the twin so far."""
    answer = httpx.get(f"{url}/twin/deliveries", timeout=_PATIENCE_S)
    return [Delivery(**each) for each in answer.json()]
