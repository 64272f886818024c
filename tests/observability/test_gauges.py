"""Gauges of the store: their reader."""

import asyncio
from datetime import datetime

from carteiro.observability.metrics.gauges import Gauges
from support.working import an_office


async def test_cancellation_in_the_last_moment_of_a_reading_is_heeded() -> None:
    """Else a process that stops would go on."""
    async with an_office() as office:

        def now() -> datetime:
            """The last step of a reading."""
            reading.cancel()
            return office.clock.at()

        reading = asyncio.create_task(Gauges(office.backend, top=1, least=1, now=now).read())
        await asyncio.wait([reading])

    assert reading.cancelled()
