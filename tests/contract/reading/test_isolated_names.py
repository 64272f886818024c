"""Reading, isolated: a name that no store can hold is unknown, in every port.

It is not found, or refused as such; it is never taken for another name, nor for an unreachable store.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from carteiro.errors import TextUnfit
from carteiro.model import (
    EMAIL,
    CancelAnswer,
    ClaimId,
    DeadFilter,
    IdempotencyKey,
    KeyId,
    KindName,
    Lease,
    MessageFilter,
    MessageId,
    NewRecipient,
    RecipientId,
    RedriveAnswer,
    TenantId,
    TenantUnknown,
    value,
)
from carteiro.ports import Backend
from support.builders import ACME, a_message, dead
from support.steps import (
    accepted,
    accepted_recipient,
    added_key,
    attempted,
    everything_about,
)
from support.templates import defined

KEY = IdempotencyKey("once", "digest")
SECOND = timedelta(seconds=1)


@value
class Known:
    """The existing data, by its real names."""

    waiting: MessageId
    dead: MessageId
    recipient: RecipientId
    key: KeyId


Ask: TypeAlias = Callable[[Backend, Known, str], Awaitable[Any]]


async def _filled(backend: Backend) -> Known:
    [buried] = await accepted(backend.store, a_message())
    await attempted(backend.store, dead())
    told = NewRecipient("ana@example.com", external_id="ana")
    recipient = await accepted_recipient(backend, told)
    labels: dict[str, Any] = {"external_id": "order-17", "tags": ("news",), "key": KEY}
    [waiting] = await accepted(backend.store, a_message(**labels))
    await defined(backend, "welcome")
    key = await added_key(backend, "key")
    return Known(waiting, buried, recipient, key.id)


# Queries with a name that is a real one and more; the expected empty answer.
_ASKED: dict[str, tuple[Ask, object]] = {
    "message": (lambda b, k, more: b.reading.message(MessageId(k.waiting + more)), None),
    "message of": (
        lambda b, k, more: b.reading.message(k.waiting, tenant=TenantId(ACME + more)),
        None,
    ),
    "events": (lambda b, k, more: b.reading.events(MessageId(k.waiting + more)), []),
    "place": (lambda b, k, more: b.reading.place(MessageId(k.waiting + more)), None),
    "unsettled": (lambda b, k, more: b.reading.unsettled([MessageId(k.waiting + more)]), []),
    "states": (lambda b, _, more: b.reading.states(tenant=TenantId(ACME + more)), {}),
    "first": (
        lambda b, _, more: b.reading.first(IdempotencyKey(KEY.key + more, KEY.digest), tenant=ACME),
        None,
    ),
    "cancel": (
        lambda b, k, more: b.store.cancel([MessageId(k.waiting + more)], tenant=ACME),
        [CancelAnswer.NOT_FOUND],
    ),
    "cancel of": (
        lambda b, k, more: b.store.cancel([k.waiting], tenant=TenantId(ACME + more)),
        [CancelAnswer.NOT_FOUND],
    ),
    "extend": (
        lambda b, k, more: b.store.extend([Lease(k.waiting, ClaimId(more))], lease=SECOND),
        [False],
    ),
    "release": (lambda b, k, more: b.store.release([Lease(k.waiting, ClaimId(more))]), None),
    "undo": (lambda b, _, more: b.store.undo_claims([ClaimId(more)]), None),
    "dead letter": (lambda b, k, more: b.dead_letters.show(MessageId(k.dead + more)), None),
    "redrive": (
        lambda b, k, more: b.dead_letters.redrive([MessageId(k.dead + more)], by="ana"),
        [RedriveAnswer.NOT_FOUND],
    ),
    "drop": (lambda b, k, more: b.dead_letters.drop([MessageId(k.dead + more)]), 0),
    "recipient": (
        lambda b, k, more: b.recipients.show(RecipientId(k.recipient + more), tenant=ACME),
        None,
    ),
    "delete recipient": (
        lambda b, k, more: b.recipients.delete(RecipientId(k.recipient + more), tenant=ACME),
        False,
    ),
    "erase recipient": (
        lambda b, k, more: b.recipients.erase(RecipientId(k.recipient + more), tenant=ACME),
        None,
    ),
    "template": (lambda b, _, more: b.templates.find(ACME, f"welcome{more}"), None),
    "versions": (lambda b, _, more: b.templates.versions(ACME, f"welcome{more}"), []),
    "delete template": (lambda b, _, more: b.templates.delete(ACME, f"welcome{more}"), False),
    "templates of": (lambda b, _, more: b.templates.list(TenantId(ACME + more)), []),
    "keys of": (lambda b, _, more: b.keys.list(TenantId(ACME + more)), []),
    "revoke": (lambda b, k, more: b.keys.revoke([KeyId(k.key + more)], tenant=ACME), [False]),
    "used": (lambda b, k, more: b.keys.used([KeyId(k.key + more)]), None),
    "holder": (lambda b, _, more: b.keys.holder(more), None),
    "tenant": (lambda b, _, more: b.tenants.find([TenantId(ACME + more)]), [None]),
    "erase tenant": (lambda b, _, more: b.tenants.erase(TenantId(ACME + more)), None),
    "standings": (lambda b, _, more: b.tenants.standings(KindName(EMAIL + more)), []),
    "inbox": (lambda b, k, more: b.inbox.list(message=MessageId(k.dead + more)), []),
    "accept of": (
        lambda b, _, more: b.store.accept([a_message(ACME + more)]),
        lambda more: [TenantUnknown(TenantId(ACME + more))],
    ),
}
_MORE = pytest.mark.parametrize("more", ["\0", "\0x", "\ud800"], ids=ascii)


@_MORE
async def test_nothing_is_found_by_an_unfit_name(backend: Backend, more: str) -> None:
    """The object with the cut name is not changed."""
    known = await _filled(backend)
    before = await _all(backend, known)

    for name, (ask, told) in _ASKED.items():
        nothing = told(more) if callable(told) else told
        try:
            found = await ask(backend, known, more)
        except TextUnfit:
            found = nothing
        assert found == nothing, name

    assert await _all(backend, known) == before


async def _all(backend: Backend, known: Known) -> tuple[object, ...]:
    return (
        await everything_about(backend, known.waiting),
        await everything_about(backend, known.dead),
        await backend.reading.place(known.waiting),
        await backend.recipients.show(known.recipient, tenant=ACME),
        await backend.templates.list(ACME),
        await backend.keys.list(ACME),
        (await backend.tenants.list()).rows,
    )


@_MORE
async def test_list_never_has_an_unfit_name(backend: Backend, more: str) -> None:
    """Every filter of messages that is a text."""
    await _filled(backend)
    filters: dict[str, Any] = {
        "tenant": ACME,
        "kind": EMAIL,
        "to": "ana@example.com",
        "external_id": "order-17",
        "recipient_external_id": "ana",
        "tag": "news",
    }

    for name, real in filters.items():
        wanted = MessageFilter(tenant=ACME)
        found = await backend.reading.messages(replace(wanted, **{name: real}))
        assert found.rows, name
        assert await _rows(backend.reading.messages(replace(wanted, **{name: real + more}))) == []


@_MORE
async def test_dead_letter_never_has_an_unfit_name(backend: Backend, more: str) -> None:
    """Every filter of dead letters that is a text, and the full-text one."""
    known = await _filled(backend)
    letter = await backend.dead_letters.show(known.dead)
    assert letter is not None
    filters: dict[str, Any] = {"tenant": ACME, "kind": EMAIL, "code": letter.failure.code}
    filters["group"] = letter.group

    for name, real in (filters | {"text": "ana@example.com"}).items():
        found = await backend.dead_letters.find(DeadFilter(**{name: real}))
        assert found.rows, name
        assert await _rows(backend.dead_letters.find(DeadFilter(**{name: real + more}))) == []


@_MORE
async def test_recipient_never_has_an_unfit_name(backend: Backend, more: str) -> None:
    """By the tenant's own id, or by address."""
    await _filled(backend)

    assert await _rows(backend.recipients.list(ACME, external_id=f"ana{more}")) == []
    assert await _rows(backend.recipients.list(ACME, email=f"ana@example.com{more}")) == []
    assert await _rows(backend.recipients.list(TenantId(ACME + more))) == []


async def _rows(page: Awaitable[Any]) -> list[Any]:
    try:
        return list((await page).rows)
    except TextUnfit:
        return []


@_MORE
async def test_stored_text_is_never_cut(backend: Backend, more: str) -> None:
    """A message with such a text is kept unchanged, or refused with its batch."""
    for field in ("id", "external_id", "to", "subject", "request_id"):
        plain = a_message()
        changed: dict[str, Any] = {field: plain.id + more}
        message = a_message(**changed)
        try:
            await backend.store.accept([plain, message])
        except TextUnfit:
            assert await backend.reading.message(plain.id) is None
        else:
            stored = await backend.reading.message(message.id)
            assert getattr(stored, field) == getattr(message, field)
