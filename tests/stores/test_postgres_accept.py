"""Accepting on Postgres: statements by list, not by message."""

import pytest

from carteiro.model import NewRecipient
from carteiro.stores.postgres import PostgresOptions, database, open_postgres
from support.builders import ACME, a_message, tenants_named

pytestmark = pytest.mark.servers


async def test_recipients_of_a_list_take_no_further_statements(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would be a round trip, inside a transaction that others wait for."""
    sent: list[str] = []
    asked = database._asked

    def recorded(operation: str, *given: object) -> list[object]:
        sent.append(operation)
        return asked(operation, *given)  # type: ignore[arg-type]

    def told(number: int) -> NewRecipient:
        return NewRecipient(f"{number}@example.com", external_id=f"{number}")

    async with open_postgres(url, PostgresOptions(connections=1)) as backend:
        await backend.tenants.define(tenants_named([ACME]))
        monkeypatch.setattr(database, "_asked", recorded)
        await backend.store.accept([a_message(recipient=told(0))])
        for_one = [*sent]
        sent.clear()
        await backend.store.accept([a_message(recipient=told(number)) for number in range(50)])

    assert sent == for_one
