"""Cache of what a store answered, a few seconds old at most."""

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
    """Answers of ``ask`` by name. A name that it leaves out of its answer is asked for again."""

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

    async def find(self, names: Collection[Name]) -> dict[Name, Known]:
        """The answers for these names; all that are unknown or too old are asked for in one call."""
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
        """Ask again when the name is needed next."""
        self._known.pop(name, None)

    def clear(self) -> None:
        """Ask again for every name."""
        self._known.clear()
