"""The crash points between a ledger and its separate queue: before and after each script of the queue.

``queue.put.asked`` is reached before the call to the queue, ``queue.put.answered`` after its answer. The commit of the
ledger before or after it is the difference that a dead process leaves between the two.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from carteiro.stores.redis.server import Argument, Server
from end_to_end.crash.points import Points


@contextmanager
def points_inside_redis(points: Points) -> Iterator[None]:
    """Put points around the scripts of this process, until the block ends."""
    run = Server.run

    async def watched_run(
        self: Server, operation: str, *arguments: Argument, patience: timedelta | None = None
    ) -> Any:
        points.reach(f"queue.{operation}.asked")
        answer = await run(self, operation, *arguments, patience=patience)
        points.reach(f"queue.{operation}.answered")
        return answer

    Server.run = watched_run  # type: ignore[method-assign]
    try:
        yield
    finally:
        Server.run = run  # type: ignore[method-assign]
