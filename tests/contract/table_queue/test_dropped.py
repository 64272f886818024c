"""Table queue, dropped: a change that can no longer be applied is dropped."""

from carteiro.model import MessageId, State
from carteiro.ports import Backend
from support.builders import ACME
from support.requests import applied, requests_of, row_of
from support.table_queue import Application


async def test_change_of_an_ended_message_is_dropped(backend: Backend, acme: Application) -> None:
    """It was cancelled meanwhile: the failure changes nothing, and does not stay requested."""
    identity = acme.enqueue()
    acme.value("SELECT mark_email_failed(%s, 'no')", identity)
    await backend.store.cancel([MessageId(str(identity))], tenant=ACME)
    before = await backend.reading.events(MessageId(str(identity)))

    count = await applied(backend)

    assert count == 1
    assert not await requests_of(backend).has_requests()
    assert (await row_of(backend, identity)).state is State.CANCELLED
    assert await backend.reading.events(MessageId(str(identity))) == before
