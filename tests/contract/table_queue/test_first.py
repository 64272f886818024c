"""Table queue, first: from the commit of a request on, no attempt is declared before it is applied."""

from carteiro.model import Refused, State
from support.requests import apply_everything, row_of
from support.set_ups import Place
from support.steps import claimed_alone, declare
from support.table_queue import Application


async def test_claimed_message_is_not_attempted_before_its_change(
    place: Place, acme: Application
) -> None:
    """It was claimed before the request, and is cancelled all the same."""
    identity = acme.enqueue()
    async with place.opened() as backend:
        job = await claimed_alone(backend.store)
        acme.update(identity, "status = 'cancelled'")

        answer = await declare(backend.store, job)
        await apply_everything(backend)

        row = await row_of(backend, identity)
    assert isinstance(answer, Refused)
    assert (row.state, row.attempts) == (State.CANCELLED, 0)
