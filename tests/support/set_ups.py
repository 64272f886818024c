"""A store set-up under test: how it is opened, and what it can do beyond the ports."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from hypothesis import settings

from carteiro.model import Fairness
from carteiro.ports import Backend
from carteiro.stores.memory import open_memory
from carteiro.stores.sqlite import open_sqlite
from support.clock import StoreClock

DEAD_LETTER_TTL = timedelta(days=7)
_FILE = "carteiro.db"

# What a set-up opens costs milliseconds: enough examples to find things, few enough to run often.
PROPERTY = settings(max_examples=30, deadline=None)

Opened: TypeAlias = AbstractAsyncContextManager[Backend]


@dataclass(frozen=True)
class SetUp:
    """One line of the list of stores that the contract suite runs on."""

    name: str
    opens: Callable[[Path, StoreClock, Fairness], Opened]
    durable: bool = False  # whether what was answered is there for the next opener

    @asynccontextmanager
    async def opened(
        self, clock: StoreClock, *, fairness: Fairness | None = None
    ) -> AsyncIterator[Backend]:
        """A new and empty store."""
        with TemporaryDirectory() as folder:
            async with self.opens(Path(folder), clock, fairness or Fairness()) as backend:
                yield backend


@dataclass(frozen=True)
class Place:
    """Where a durable set-up keeps its store: it can be opened again, and twice at once."""

    set_up: SetUp
    folder: Path
    clock: StoreClock

    def opened(self) -> Opened:
        """The store that is kept here."""
        return self.set_up.opens(self.folder, self.clock, Fairness())


def in_memory(_folder: Path, clock: StoreClock, fairness: Fairness) -> Opened:
    """A store that lives as long as its process."""
    return open_memory(clock=clock, fairness=fairness, dead_letter_ttl=DEAD_LETTER_TTL)


def on_sqlite(folder: Path, clock: StoreClock, fairness: Fairness) -> Opened:
    """A store in one file."""
    return open_sqlite(
        folder / _FILE, clock=clock, fairness=fairness, dead_letter_ttl=DEAD_LETTER_TTL
    )
