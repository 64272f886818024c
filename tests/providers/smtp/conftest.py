"""Everything here runs on both event loops: they differ in sockets, buffers and encryption."""

import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops that a worker may run on."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
