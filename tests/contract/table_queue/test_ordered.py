"""Table queue, ordered: the changes of one message are applied in the order in which they were requested."""

from datetime import UTC, datetime

from carteiro.model import State
from carteiro.ports import Backend
from support.requests import apply_everything, row_of
from support.table_queue import Application


async def test_last_change_wins(backend: Backend, acme: Application) -> None:
    """Of two times the second, and a cancel after both."""
    later, cancelled = acme.enqueue(), acme.enqueue()
    for identity in (later, cancelled):
        for year in (2098, 2097):
            acme.update(identity, f"next_retry_at = '{year}-01-01Z'")
    acme.update(cancelled, "status = 'cancelled'")

    await apply_everything(backend)

    assert (await row_of(backend, later)).due_at == datetime(2097, 1, 1, tzinfo=UTC)
    assert (await row_of(backend, cancelled)).state is State.CANCELLED


async def test_limit_applies_to_the_failure_behind_it(backend: Backend, acme: Application) -> None:
    """Without retries left, the failure is final."""
    identity = acme.enqueue()
    acme.update(identity, "max_retries = 0")
    acme.value("SELECT mark_email_failed(%s, 'no')", identity)

    await apply_everything(backend)

    assert (await row_of(backend, identity)).state is State.FAILED
