"""Everything here runs on both event loops: they differ in sockets, buffers and encryption."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache

import httpx
import pytest
import uvloop

_the_context = cache(httpx.create_ssl_context)  # it reads all certificates that are trusted


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops that a worker may run on."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def _one_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin is called without encryption: providers share a context, which takes 20 ms to make."""
    monkeypatch.setattr(httpx, "create_ssl_context", _the_context)
