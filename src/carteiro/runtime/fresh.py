"""Cache of a store's answers, at most a few seconds old."""

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

Name = TypeVar("Name")
Known = TypeVar("Known")

FRESH_FOR = timedelta(seconds=5)  # a change in the store may stay unseen for this long
_FRESH_FOR_S = FRESH_FOR.total_seconds()
MOST_REMEMBERED = 100_000


class Fresh(Generic[Name, Known]):
    """Answers of ``ask`` by name. Names missing in its answer are asked for again."""

    def __init__(
        self,
        ask: Callable[[Collection[Name]], Awaitable[Mapping[Name, Known]]],
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_REMEMBERED,
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._most = most
        self._known: dict[Name, tuple[Known, float]] = {}
        self.clear = self._known.clear

    async def find(self, names: Collection[Name]) -> dict[Name, Known]:
        """Return the answers for these names; unknown and old ones are asked for in one call."""
        now, known = self._clock(), self._known
        found = {each: known[each][0] for each in names if each in known and now < known[each][1]}
        if len(found) < len(names):
            asked = [each for each in names if each not in found]
            answers = await self._ask(asked)
            if len(known) + len(answers) > self._most:
                known.clear()
            known.update({name: (each, now + _FRESH_FOR_S) for name, each in answers.items()})
            found.update(answers)
        return found

    def forget(self, name: Name) -> None:
        """Remove a name from the cache."""
        self._known.pop(name, None)
