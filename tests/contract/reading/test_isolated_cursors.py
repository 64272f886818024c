"""Reading, isolated: the cursors of a tenant hold its own times and ids, with any activity of other tenants."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from carteiro.model import (
    EMAIL,
    Cursor,
    DeadFilter,
    MessageFilter,
    MessageId,
    NewRecipient,
    NewSuppression,
    Page,
    SuppressionReason,
    TenantId,
)
from carteiro.policy.suppression import key_of
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, dead, sent, tenants_named
from support.clock import MILLISECOND, StoreClock
from support.set_ups import SetUp
from support.steps import accepted, attempted

ANA = "ana@example.com"
FILTERS: list[dict[str, Any]] = [
    {},
    {"kind": EMAIL},
    {"to": ANA},
    {"external_id": "order-1"},
    {"provider_id": "provider-1"},
    {"recipient_external_id": "ana"},
    {"tag": "spring"},
]
_Ask: TypeAlias = Callable[[Backend, Cursor | None], Awaitable[Page[Any]]]


async def _live(backend: Backend, clock: StoreClock, *, others: int) -> None:
    """A tenant sends to an address three times; before each time another tenant sends to it ``others`` times."""
    for index in range(3):
        for _ in range(others):
            await _send(backend, BRASA)
        await _send(backend, ACME, id=MessageId(f"message-{index}"))
        await backend.suppressions.put(
            [NewSuppression(f"{index}@example.com", SuppressionReason.MANUAL)], tenant=ACME
        )
        clock.advance(MILLISECOND)


async def _send(backend: Backend, tenant: TenantId, **changes: Any) -> None:
    person = NewRecipient(ANA, external_id="ana")
    fields: dict[str, Any] = {"external_id": "order-1", "recipient": person, "tags": ("spring",)}
    await accepted(backend.store, a_message(tenant, to=ANA, **fields, **changes))
    await attempted(backend.store, sent())
    person = NewRecipient(ANA, external_id=f"dead {changes}")
    await accepted(backend.store, a_message(tenant, to=ANA, recipient=person))
    await attempted(backend.store, dead())


async def _pages(backend: Backend, ask: _Ask) -> list[Page[Any]]:
    """All of them, of one row each."""
    pages: list[Page[Any]] = []
    cursor: Cursor | None = None
    while True:
        pages.append(await ask(backend, cursor))
        cursor = pages[-1].next
        if cursor is None:
            return pages


def _messages(**wanted: Any) -> _Ask:
    mine = MessageFilter(tenant=ACME, **wanted)
    return lambda backend, cursor: backend.reading.messages(mine, cursor=cursor, limit=1)


def _decoded(cursor: str) -> list[object]:
    decoded: list[object] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return decoded


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
async def test_cursors_do_not_depend_on_other_tenants(
    set_up: SetUp, wanted: dict[str, Any]
) -> None:
    """No tenant learns from a cursor when, how much and to whom others send."""
    seen = []
    for others in (0, 3):
        clock = StoreClock()
        async with set_up.opened(clock) as backend:
            await backend.tenants.define(tenants_named([ACME, BRASA]))
            await _live(backend, clock, others=others)
            pages = await _pages(backend, _messages(**wanted))
            seen.append([page.next for page in pages if page.rows[0].id.startswith("message-")])

    assert len(seen[0]) == 3
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("ask", "time", "id_of"),
    [
        *((_messages(**wanted), "created_at", lambda row: row.id) for wanted in FILTERS),
        (
            lambda backend, cursor: backend.dead_letters.find(
                DeadFilter(tenant=ACME), cursor=cursor, limit=1
            ),
            "moved_at",
            lambda row: row.id,
        ),
        (
            lambda backend, cursor: backend.recipients.list(ACME, cursor=cursor, limit=1),
            "created_at",
            lambda row: row.id,
        ),
        (
            lambda backend, cursor: backend.suppressions.list(ACME, cursor=cursor, limit=1),
            "created_at",
            lambda row: key_of(ACME, row.address) + row.reason,
        ),
    ],
    ids=[*map(str, FILTERS), "dead letters", "recipients", "suppressions"],
)
async def test_a_cursor_is_the_time_and_the_id_of_the_last_row(
    backend: Backend, clock: StoreClock, ask: _Ask, time: str, id_of: Callable[[Any], str]
) -> None:
    """And nothing else: no number that counts the rows of everybody."""
    await _live(backend, clock, others=2)

    pages = await _pages(backend, ask)

    assert len(pages) > 2
    for page in pages[:-1]:
        [row] = page.rows
        at = (getattr(row, time) - clock.at()) // MILLISECOND + clock.now_ms
        assert _decoded(page.next or "") == [at, id_of(row)]


async def test_cursor_with_the_message_of_another_tenant_reveals_nothing(
    backend: Backend, clock: StoreClock
) -> None:
    """It is a position in time, as that of an unknown message."""
    await _live(backend, clock, others=1)
    [theirs, *_] = (await backend.reading.messages(MessageFilter(tenant=BRASA))).rows
    at = (theirs.created_at - clock.at()) // MILLISECOND + clock.now_ms
    cursors = [
        Cursor(base64.urlsafe_b64encode(json.dumps([at, each]).encode()).decode().rstrip("="))
        for each in (theirs.id, f"{theirs.id}-")
    ]

    found, unknown = [
        await backend.reading.messages(MessageFilter(tenant=ACME), cursor=cursor)
        for cursor in cursors
    ]

    assert found == unknown
