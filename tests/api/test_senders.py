"""Whom tenants may send as: their own domains, and nobody's that another has claimed, whatever the way in."""

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
    """An e-mail that names this From, or none."""
    return MAIL if sender is None else {**MAIL, "from": sender}


async def answers(post: Carteiro, sender: str | None) -> list[str]:
    """What each way in says of an e-mail of ACME: taken, or why its From is refused."""
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
async def test_a_claimed_domain_is_nobody_elses(
    post: Carteiro, sender: str | None, tenant: Tenant
) -> None:
    """Named in the e-mail, or the default From of before the claim; with any provider."""
    await post.backend.tenants.define([tenant])

    assert {*await answers(post, sender)} == {"is in a domain that another tenant has claimed"}


async def test_what_nobody_has_claimed_is_allowed_where_the_installation_says_so(
    post: Carteiro,
) -> None:
    """As ever with a provider that never leaves this machine."""
    assert await answers(post, "post@free.example") == ["taken", "taken"]


async def test_across_a_network_an_empty_list_means_the_default_from() -> None:
    """Unless the installation says otherwise; a list of domains is that list."""
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


async def test_an_edited_dead_letter_is_judged_as_a_new_mail() -> None:
    """Its From, too: by claims, and by what the installation allows."""
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


async def test_a_worker_refuses_what_a_database_put_in() -> None:
    """The table queue puts the tenant's default From in without asking: a claim of another counts when it is sent."""
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
