"""End background tasks, also those whose libraries miss a cancellation."""

import asyncio

_ROUNDS, _AGAIN_S = 10, 1.0


async def ended(*tasks: "asyncio.Task[None]") -> None:
    """Cancel them, and again each second: before Python 3.12 `asyncio.wait_for` may swallow a cancellation.

    MongoDB's driver calls it for each command. After ten seconds nobody waits for them any more.
    """
    for _ in range(_ROUNDS):
        left = [task for task in tasks if not task.done()]
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=_AGAIN_S)
