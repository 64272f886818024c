"""Table queue, fair: however many changes one tenant has requested, those of another do not wait for them."""

from carteiro.model import State
from carteiro.ports import Backend
from support.requests import applied, row_of
from support.table_queue import Application


async def test_late_change_of_another_tenant_is_in_the_first_round(
    backend: Backend, acme: Application, brasa: Application
) -> None:
    """It came after thirty of the first tenant."""
    for _ in range(30):
        acme.update(acme.enqueue(), "status = 'cancelled'")
    late = brasa.enqueue()
    brasa.update(late, "status = 'cancelled'")

    count = await applied(backend, limit=2)

    assert count <= 2
    assert (await row_of(backend, late)).state is State.CANCELLED
