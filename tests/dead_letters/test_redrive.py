"""Redriving many dead letters, and editing one: each is sent once, and every edit is validated."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from carteiro.dead_letters.redrive import EDITABLE, plan_redrive, revise, start_redrive
from carteiro.email.message import make_email, restore_email, stored_content
from carteiro.errors import InvalidMessage
from carteiro.model import (
    EMAIL,
    NOTICES,
    DeadFilter,
    KindName,
    NewRecipient,
    NewTemplate,
    Ramp,
    Redrive,
    RedriveAnswer,
    Revision,
    StoredMessage,
)
from carteiro.ports import Backend
from support.builders import ACME, BRASA, TASK, a_tenant, tenants_named
from support.burying import buried, found
from support.quick_store import quick_backend
from support.redriving import advanced
from support.steps import claimed

TO_ANA = {"to": "ana@example.com", "subject": "Oi", "html": "<p>Oi</p>"}


@asynccontextmanager
async def a_backend() -> AsyncIterator[Backend]:
    """A store that knows two tenants."""
    async with quick_backend() as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        yield backend


# --- all that match -------------------------------------------------------------------------------


async def test_plan_counts_what_is_not_redriven() -> None:
    """With its groups and tenants, the largest first, and the newest as a sample."""
    async with a_backend() as backend:
        first = await buried(backend, failure={"code": "421", "rule": "other"})
        others = [await buried(backend, BRASA) for _ in range(6)]
        await backend.dead_letters.redrive(others[:1], by="ana")

        plan = await plan_redrive(backend, DeadFilter(is_redriven=True))
        of_one = await plan_redrive(backend, DeadFilter(tenant=BRASA))
        of_none = await plan_redrive(backend, DeadFilter(tenant=BRASA, code="421"))

        assert plan.total == 6
        assert [(each.key, each.count) for each in plan.tenants] == [(BRASA, 5), (ACME, 1)]
        assert sorted(each.count for each in plan.groups) == [1, 5]
        assert {each.key for each in plan.groups} == {*plan.causes}
        assert len(plan.sample) == 5
        assert {*plan.sample} <= {first, *others[1:]}
        assert (of_one.total, [*of_one.tenants]) == (5, [plan.tenants[0]])
        assert (of_none.total, [*of_none.tenants], [*of_none.groups]) == (0, [], [])


async def test_own_notices_are_redriven_only_if_their_tenant_is_named() -> None:
    """A stale notice helps nobody."""
    async with a_backend() as backend:
        await backend.tenants.ensure([NOTICES])
        notice = await buried(backend, NOTICES)
        letter = await buried(backend)

        plan = await plan_redrive(backend, DeadFilter())
        named = await plan_redrive(backend, DeadFilter(tenant=NOTICES))
        redrive = await start_redrive(backend, DeadFilter(), by="ana", ramp=Ramp())

        assert isinstance(redrive, Redrive)
        assert (plan.total, redrive.total, plan.sample) == (1, 1, [letter])
        assert [each.count for each in plan.groups] == [1]
        assert (named.total, named.sample) == (1, [notice])
        await advanced(backend)
        assert await found(backend, is_redriven=False) == [notice]


async def test_started_redrive_knows_its_number() -> None:
    """Of those that match and are not redriven."""
    async with a_backend() as backend:
        for tenant in (ACME, ACME, BRASA):
            await buried(backend, tenant)

        redrive = await start_redrive(backend, DeadFilter(tenant=ACME), by="ana", ramp=Ramp())

        assert isinstance(redrive, Redrive)
        assert (redrive.total, redrive.tenant, redrive.by) == (2, ACME, "ana")


# --- editing one
# ----------------------------------------------------------------------------------


async def revised(
    changes: dict[str, Any], *, kind: KindName = EMAIL, before: dict[str, Any] | None = None
) -> Revision:
    """An e-mail to Ana, or ``before``, after these changes."""
    content = (
        stored_content(make_email(TO_ANA)) if before is None else orjson.dumps(before).decode()
    )
    async with a_backend() as backend:
        await backend.tenants.define([a_tenant(ACME, from_domains=("example.com",))])
        await backend.templates.define(NewTemplate(ACME, "hello", "Para {{ x }}", text="{{ x }}"))
        message = await dead_row(backend, content=content, kind=kind)
        return await revise(message, changes, backend=backend)


async def dead_row(backend: Backend, **changes: Any) -> StoredMessage:
    """A dead message as it is read; ``changes`` are those of `buried`."""
    row = await backend.reading.message(await buried(backend, **changes))
    assert row is not None
    return row


async def refusal(changes: dict[str, Any], **options: Any) -> list[str]:
    """The fields that are wrong with these changes."""
    with pytest.raises(InvalidMessage) as caught:
        await revised(changes, **options)
    return [each.field for each in caught.value.fields]


async def test_named_fields_change_and_the_rest_stays() -> None:
    """Only the address was wrong."""
    revision = await revised({"to": "rui@EXAMPLE.com", "replyTo": "a@example.com"})

    email = restore_email(revision.content)
    assert (revision.to, revision.subject) == ("rui@example.com", "Oi")
    assert (email.to, email.html, email.reply_to) == (
        "rui@example.com",
        "<p>Oi</p>",
        "a@example.com",
    )


async def test_null_removes_a_field() -> None:
    """Also inside a nested object."""
    before = TO_ANA | {"text": "Oi", "headers": {"X-A": "1", "X-B": "2"}}

    email = restore_email(
        (await revised({"html": None, "headers": {"X-A": None, "X-C": "3"}}, before=before)).content
    )

    assert (email.html, email.text) == (None, "Oi")
    assert email.headers == {"X-B": "2", "X-C": "3"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to": "nobody"}, "to"),
        ({"to": None}, "to"),
        ({"subject": "a\nb"}, "subject"),
        ({"html": None}, "html"),
        ({"headers": {"Bcc": "x@example.com"}}, "headers"),
        ({"cc": "x@example.com"}, "cc"),
        ({"from": "a@elsewhere.com"}, "from"),
        ({"template": {"type": "unknown"}}, "template.type"),
        ({"template": {"type": "hello"}}, "template.variables.x"),
        ({"template": {"type": "hello"}, "html": "x"}, "html"),
        ({"priority": 1}, "priority"),
        ({"externalId": "x"}, "externalId"),
        ({"no such field!": 1}, "(unknown)"),
        ({"html": object()}, "body"),
        ({}, "body"),
    ],
)
async def test_edit_to_an_invalid_email_is_refused(changes: dict[str, Any], field: str) -> None:
    """It is validated like any other, and only the content can change."""
    assert await refusal(changes) == [field]


async def test_template_can_be_replaced() -> None:
    """The new template replaces the content."""
    revision = await revised({"template": {"type": "hello", "variables": {"x": "Ana"}}})

    email = restore_email(revision.content)
    assert (email.subject, email.html, email.text) == ("Para Ana", None, "Ana")
    assert email.template is not None
    assert (email.template.type, email.template.version) == ("hello", 1)


async def test_content_of_a_template_can_be_edited() -> None:
    """The template that it came from is still recorded."""
    before = TO_ANA | {"template": {"type": "hello", "version": 3}}

    email = restore_email((await revised({"subject": "Oi!"}, before=before)).content)

    assert (email.subject, email.html) == ("Oi!", "<p>Oi</p>")
    assert email.template is not None
    assert email.template.version == 3


async def test_recipient_follows_the_address() -> None:
    """It is the same person, at the correct address."""
    before = TO_ANA | {"recipient": {"email": "ana@example.com", "externalId": "c-1"}}

    revision = await revised({"to": "ana@example.org"}, before=before)

    assert revision.recipient == NewRecipient("ana@example.org", external_id="c-1")


async def test_recipient_can_be_removed() -> None:
    """Then the e-mail has an address, and no known recipient."""
    before = TO_ANA | {"recipient": {"email": "ana@example.com", "externalId": "c-1"}}

    revision = await revised({"to": "rui@example.org", "recipient": None}, before=before)

    assert revision.recipient is None


async def test_arguments_of_a_task_can_be_edited() -> None:
    """The existing ones, to any value that JSON can hold."""
    revision = await revised({"n": None}, kind=TASK, before={"n": 1, "m": 2})

    assert orjson.loads(revision.content) == {"n": None, "m": 2}
    assert (revision.to, revision.subject) == (None, None)


@pytest.mark.parametrize(
    "changes", [{"to": "ana@example.com"}, {"n": object()}, {"n": "x" * 2**20}]
)
async def test_other_fields_of_a_task_cannot_be_edited(changes: dict[str, Any]) -> None:
    """Nor can an argument become a value that is too large or not JSON."""
    assert await refusal(changes, kind=TASK, before={"n": 1})


@pytest.mark.parametrize("content", [None, ""])
async def test_pruned_content_cannot_be_edited(content: str | None) -> None:
    """There is nothing left to change."""
    async with a_backend() as backend:
        message = replace(await dead_row(backend), content=content)

        with pytest.raises(InvalidMessage, match="retention"):
            await revise(message, {"to": "a@b.com"}, backend=backend)


async def test_edited_dead_letter_is_sent_with_its_new_content() -> None:
    """From the stored content through the edit to the next worker."""
    async with a_backend() as backend:
        message = await dead_row(backend, content=stored_content(make_email(TO_ANA)))
        revision = await revise(message, {"subject": "Novo"}, backend=backend)

        answers = await backend.dead_letters.redrive([message.id], by="ana", revision=revision)

        assert revision.fields == ("subject",)
        [job] = await claimed(backend.store)
        assert answers == [RedriveAnswer.REDRIVEN]
        assert job.content is not None
        assert (restore_email(job.content).subject, job.revision) == ("Novo", 2)


@pytest.mark.parametrize(
    ("kind", "content", "changes"),
    [(EMAIL, stored_content(make_email(TO_ANA)), {"subject": "Novo"}), (TASK, '{"n":1}', {"n": 2})],
)
async def test_edit_applies_to_the_revision_that_was_read(
    kind: KindName, content: str, changes: dict[str, Any]
) -> None:
    """It cannot overwrite another edit made meanwhile."""
    async with a_backend() as backend:
        message = replace(await dead_row(backend, content=content, kind=kind), revision=7)

        assert (await revise(message, changes, backend=backend)).of == 7


def test_every_field_of_the_content_can_be_edited() -> None:
    """The list names fields that an e-mail has."""
    assert {
        field.alias or name for name, field in type(make_email(TO_ANA)).model_fields.items()
    } >= EDITABLE
