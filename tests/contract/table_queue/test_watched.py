"""Table queue, watched: pending e-mails are counted, up to a bound."""

from carteiro.model import MessageId
from carteiro.ports import Backend
from support.builders import ACME, messages
from support.requests import requests_of
from support.steps import accepted
from support.table_queue import Application


async def test_pending_rows_are_counted(backend: Backend, acme: Application) -> None:
    """Neither finished ones, nor e-mails that were not put in by SQL."""
    none = await requests_of(backend).pending()
    first, *_ = [acme.enqueue() for _ in range(3)]
    await backend.store.cancel([MessageId(str(first))], tenant=ACME)
    await accepted(backend.store, *messages(5))

    assert (none, await requests_of(backend).pending()) == (0, 2)
