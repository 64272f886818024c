"""Senders of tenants: their own domains, and no domain claimed by another, at every entry point."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.dead_letters.redrive import revise
from carteiro.errors import InvalidMessage, NotAccepted
from carteiro.jobs.kind import Pool
from carteiro.model import Accepted, NewTemplate, State, Tenant
from carteiro.policy.tenancy import SendingRules
from carteiro.providers.email_kind import email_kind
from support.builders import ACME, BRASA, a_tenant
from support.http import a_client, error_in, fields_in, opened
from support.working import an_office

MAIL: dict[str, Any] = {"to": "ok@sandbox.test", "subject": "Oi", "text": "Oi"}


def a_mail(sender: str | None) -> dict[str, Any]:
    """An e-mail with this From, or none."""
    return MAIL if sender is None else {**MAIL, "from": sender}


async def answers(post: Carteiro, sender: str | None) -> list[str]:
    """The answer of each entry point to an e-mail of ACME: accepted, or the reason of the refusal."""
    said = []
    async with a_client(post) as client:
        one = await client.post("/v1/email/send", json=a_mail(sender))
        batch = await client.post("/v1/email/batch", json={"messages": [a_mail(sender)]})
    if one.status_code != 202:
        error = error_in(one, 422, "INVALID_VALUE")
        assert fields_in(error) == ["from"]
        said.append(error["details"][0]["message"])
    else:
        said.append("taken")
    [item] = batch.json()["results"]
    assert item["status"] == one.status_code
    [sent] = await post.send_many([{"tenant": ACME, **a_mail(sender)}])
    said.append("taken" if isinstance(sent, Accepted) else _why(sent))
    return said


def _why(answer: object) -> str:
    assert isinstance(answer, NotAccepted)
    [fault] = answer.fields
    assert fault.field == "from"
    return fault.message


@pytest.fixture(params=["sandbox", "smtp"])
async def post(request: pytest.FixtureRequest) -> AsyncIterator[Carteiro]:
    """BRASA has claimed brasa.example; any other From is allowed."""
    async with opened(
        "memory://", provider=request.param, senders={"without_domains": "any"}
    ) as it:
        await it.backend.tenants.define([a_tenant(BRASA, from_domains=("brasa.example",))])
        yield it


@pytest.mark.parametrize(
    ("sender", "tenant"),
    [
        ("post@brasa.example", a_tenant()),
        ("post@Mail.Brasa.Example", a_tenant()),
        (None, a_tenant(default_from="post@brasa.example")),
        ("post@brasa.example", a_tenant(default_from="post@brasa.example")),
    ],
)
async def test_claimed_domain_is_refused_to_others(
    post: Carteiro, sender: str | None, tenant: Tenant
) -> None:
    """In the e-mail, or as a default From older than the claim; with any provider."""
    await post.backend.tenants.define([tenant])

    assert {*await answers(post, sender)} == {"is in a domain that another tenant has claimed"}


async def test_unclaimed_domain_is_allowed_where_configured(
    post: Carteiro,
) -> None:
    """Always with a provider that never leaves this machine."""
    assert await answers(post, "post@free.example") == ["taken", "taken"]


async def test_empty_domain_list_means_the_default_from() -> None:
    """With a provider across a network, unless configured otherwise; a list of domains is that list."""
    said = {}
    async with opened("memory://", provider="smtp") as post:
        await post.backend.tenants.define([a_tenant(default_from="post@acme.example")])
        for sender in (None, "post@ACME.example", "shop@acme.example"):
            said[sender] = {*await answers(post, sender)}
    async with opened("memory://", provider="smtp") as post:
        await post.backend.tenants.define([a_tenant(from_domains=("acme.example",))])
        said["listed@acme.example"] = {*await answers(post, "listed@acme.example")}

    [refused] = said.pop("shop@acme.example")
    assert "must be the tenant's default From" in refused
    assert [*said.values()] == [{"taken"}] * 3


async def test_edited_dead_letter_is_validated_like_a_new_email() -> None:
    """Its From too: by claims, and by the configured rules."""
    async with opened("memory://") as post:
        backend = post.backend
        await backend.tenants.define([a_tenant(BRASA, from_domains=("brasa.example",))])
        dead = await post.send(tenant=ACME, to="invalid@sandbox.test", subject="Oi", text="Oi")
        message = await backend.reading.message(dead.id)
        assert message is not None

        for sender, only, why in (
            ("post@brasa.example", False, "another tenant has claimed"),
            ("post@free.example", True, "default From"),
        ):
            rules = SendingRules(default_from_only=only)
            with pytest.raises(InvalidMessage, match=why):
                await revise(message, {"from": sender}, backend=backend, rules=rules)
        assert await revise(message, {"from": "post@free.example"}, backend=backend)


async def test_worker_refuses_a_claimed_from_of_the_table_queue() -> None:
    """The table queue does not check the tenant's default From; the worker does before sending."""
    content = '{"maxRetries":2,"to":"ok@sandbox.test","from":"post@%s.example","template":{"type":"hello"}}'
    async with opened("memory://") as post, an_office() as office:
        await office.backend.templates.define(NewTemplate(ACME, "hello", subject="Oi", text="Oi"))
        await office.backend.tenants.define(
            [a_tenant(BRASA, from_domains=("brasa.example",)), a_tenant()]
        )
        refused = await office.post_raw(content % "brasa")
        taken = await office.post_raw(content % "free")
        kind, _ = email_kind(post.settings, office.backend)

        await office.work(Pool("email", 5, (kind,)))

        row = await office.row(refused)
        assert row.failure is not None
        assert (row.state, row.failure.code) == (State.FAILED, "INVALID_PAYLOAD")
        assert "another tenant has claimed" in row.failure.reason
        assert (await office.row(taken)).state is State.SENT
