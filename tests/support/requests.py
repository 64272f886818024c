"""Changes requested by SQL, as a process applies them."""

from datetime import timedelta
from uuid import UUID

from carteiro.model import MessageId, StoredMessage
from carteiro.ports import Backend, TableQueue

RETRY = timedelta(minutes=1)


def requests_of(backend: Backend) -> TableQueue:
    """The port of a store that has it."""
    assert backend.table_queue is not None
    return backend.table_queue


def a_minute(failed: int, max_retries: int) -> timedelta | None:
    """The delay after each failure but the last."""
    return None if failed > max_retries else RETRY


async def applied(backend: Backend, *, limit: int = 100) -> int:
    """The number of changes that one round applied or dropped."""
    return (await requests_of(backend).apply(a_minute, limit=limit)).count


async def apply_everything(backend: Backend) -> None:
    """Rounds until there is nothing more to apply."""
    while await applied(backend):
        pass


async def row_of(backend: Backend, identity: UUID) -> StoredMessage:
    """The ledger row of a table queue row."""
    row = await backend.reading.message(MessageId(str(identity)))
    assert row is not None
    return row
