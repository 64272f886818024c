"""The message made from an e-mail."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from carteiro.email.message import Email, make_email, restore_email
from carteiro.email.submission import Submission, new_message, with_sender
from carteiro.errors import InvalidMessage
from carteiro.model import (
    EMAIL,
    ApiLimits,
    Delivery,
    NewMessage,
    NewRecipient,
    QueueRow,
    Tenant,
)
from carteiro.policy.tenancy import SendingRules, asked_sender
from carteiro.runtime.domain_cache import DomainCache
from support.builders import ACME, BRASA, a_tenant
from support.quick_store import quick_backend


def an_email(**changes: Any) -> Email:
    """An e-mail to Ana; ``changes`` are its fields."""
    return make_email({"to": "ana@example.com", "subject": "Bom dia", "text": "Olá"} | changes)


def a_submission(
    tenant: Tenant | None = None, key: str | None = None, **changes: Any
) -> Submission:
    """An e-mail of the tenant; ``changes`` are its fields."""
    return Submission(an_email(**changes), tenant or a_tenant(), "request-1", key)


def message_of(email: Email, **changes: Any) -> NewMessage:
    """The message made from Acme's e-mail."""
    return new_message(Submission(email, a_tenant(), "request-1"), **changes)


async def signed(email: Email, tenant: Tenant, *, only: bool = False) -> Email:
    """The e-mail with its From, if allowed, where Brasa has claimed brasa.example."""
    rules = SendingRules(default_from_only=only)
    async with quick_backend() as backend:
        await backend.tenants.define([a_tenant(BRASA, from_domains=("brasa.example",))])
        sender = asked_sender(tenant, email.from_)
        owner = await DomainCache(backend.tenants).other_owner(tenant.id, sender)
        return with_sender(email, tenant, owner=owner, rules=rules)


def test_message_contains_the_email() -> None:
    """It is stored whole, with the fields for lookups."""
    email = an_email(externalId="pedido-42")

    message = message_of(email)

    assert restore_email(message.content) == email
    assert (message.tenant, message.kind, message.request_id) == (ACME, EMAIL, "request-1")
    assert (message.to, message.subject) == ("ana@example.com", "Bom dia")
    assert message.external_id == "pedido-42"
    assert message.declares


def test_ids_are_new_and_sorted_by_time() -> None:
    """Each message has its own id, version 7, later ones greater."""
    first, second = message_of(an_email()), message_of(an_email())

    assert UUID(first.id).version == 7
    assert first.id < second.id


def test_missing_fields_have_defaults() -> None:
    """Due at once, of middle priority, for a day, sent again when in doubt."""
    message = message_of(an_email())

    assert (message.due, message.priority, message.ttl) == (None, 5, timedelta(hours=24))
    assert (message.delivery, message.recipient) == (Delivery.AT_LEAST_ONCE, None)
    assert message_of(an_email(), default_ttl=timedelta(hours=1)).ttl == timedelta(hours=1)


def test_given_fields_are_kept() -> None:
    """Time, urgency, lifetime and delivery are the sender's choice."""
    later = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    message = message_of(
        an_email(scheduledAt=later, priority=1, ttl=1500, delivery="at_most_once"),
        default_ttl=timedelta(hours=1),
    )

    assert (message.due, message.priority) == (later, 1)
    assert message.ttl == timedelta(seconds=1.5)
    assert message.delivery is Delivery.AT_MOST_ONCE


def test_recipient_is_included() -> None:
    """By the ids that the tenant gave."""
    recipient = {
        "recipientId": "recipient-1",
        "externalId": "42",
        "cpfCnpjHash": "hash",
        "razaoSocial": "Ana Ltda",
        "nome": "Ana",
        "email": "ana@example.com",
    }

    assert message_of(an_email(recipient=recipient)).recipient == NewRecipient(
        email="ana@example.com",
        recipient_id="recipient-1",  # type: ignore[arg-type] # a plain text in JSON
        external_id="42",
        cpf_cnpj_hash="hash",
        razao_social="Ana Ltda",
        nome="Ana",
    )


def test_labels_key_limits_and_row_are_included() -> None:
    """They are committed with the e-mail; a row creates no recipient."""
    email = an_email(tags=["b", "a"], recipient={"externalId": "7", "email": "ana@example.com"})
    limits, row = ApiLimits(1, 2, 3), QueueRow("7")

    message = new_message(Submission(email, a_tenant(), "request-1", "key", limits, row))

    assert (message.tags, message.limits, message.row) == (("b", "a"), limits, row)
    assert message.key is not None
    assert (message.key.key, message.recipient) == ("key", None)


def test_type_of_a_template_is_included() -> None:
    """It is that of the submission: the content is already rendered."""
    asked = make_email({"to": "ana@example.com", "template": {"type": "welcome"}})

    message = new_message(Submission(asked, a_tenant(), "request-1"), an_email())

    assert (message.template_type, message.subject) == ("welcome", "Bom dia")


# --- settings of the tenant ---------------------------------------------------------------------


async def test_default_from_of_the_tenant_is_filled_in() -> None:
    """Only where the e-mail names none; without both it stays empty."""
    tenant = a_tenant(default_from="post@acme.example")

    assert (await signed(an_email(), tenant)).from_ == "post@acme.example"
    assert (await signed(an_email(**{"from": "x@y.example"}), tenant)).from_ == "x@y.example"
    assert (await signed(an_email(), a_tenant())).from_ is None


@pytest.mark.parametrize(
    ("sender", "domains"),
    [
        ("post@acme.example", ("brasa.example", "acme.example")),
        ("post@ACME.example", ("acme.EXAMPLE",)),
        ("post@açaí.example", ("AÇAÍ.example",)),
        ("post@xn--aa-4iaz.example", ("açaí.example",)),
        ("post@açaí.example", ("xn--aa-4iaz.example",)),
        ("post@anything.example", ()),
    ],
)
async def test_from_of_an_allowed_domain_is_kept(sender: str, domains: tuple[str, ...]) -> None:
    """In any spelling of the domain; an empty list allows any."""
    email = an_email(**{"from": sender})

    assert await signed(email, a_tenant(from_domains=domains)) == email


@pytest.mark.parametrize(
    "sender",
    ["post@brasa.example", "post@mail.acme.example", "post@example", "post@notacme.example"],
)
async def test_from_of_another_domain_is_refused(sender: str) -> None:
    """A domain covers itself alone, not its subdomains or siblings."""
    email = an_email().model_copy(update={"from_": sender})

    with pytest.raises(InvalidMessage) as refused:
        await signed(email, a_tenant(from_domains=("acme.example",)))

    assert [each.field for each in refused.value.fields] == ["from"]


@pytest.mark.parametrize("changes", [{"from": "post@brasa.example"}, {}], ids=str)
async def test_from_claimed_by_another_tenant_is_refused(changes: dict[str, str]) -> None:
    """In the e-mail, or as the tenant's default; its own claim does not matter."""
    tenant = a_tenant(default_from="post@brasa.example")

    with pytest.raises(InvalidMessage, match="another tenant has claimed"):
        await signed(an_email(**changes), tenant)

    brasa = a_tenant(BRASA, default_from="post@brasa.example")
    assert (await signed(an_email(**changes), brasa)).from_ == "post@brasa.example"


async def test_only_the_default_from_may_be_allowed_without_domains() -> None:
    """In any spelling; a list of domains allows more."""
    tenant = a_tenant(default_from="post@ACME.example")
    listed = a_tenant(from_domains=("acme.example",), default_from="post@acme.example")

    own = [await signed(an_email(**each), tenant, only=True) for each in ({}, _FROM_POST)]
    other = await signed(an_email(**{"from": "b@acme.example"}), listed, only=True)

    assert [each.from_ for each in own] == ["post@ACME.example", "post@acme.example"]
    assert (await signed(an_email(), a_tenant(), only=True)).from_ is None
    assert other.from_ == "b@acme.example"
    for sender, who in (("b@acme.example", tenant), ("post@acme.example", a_tenant())):
        with pytest.raises(InvalidMessage, match="default From"):
            await signed(an_email(**{"from": sender}), who, only=True)


_FROM_POST = {"from": "post@acme.example"}


def test_external_id_is_a_key_where_the_tenant_says_so() -> None:
    """Only if there is one, and only if no key was given."""
    says_so = a_tenant(external_id_is_key=True)

    made = a_submission(says_so, externalId="order-1").idempotency_key

    assert made == a_submission(key="\x1forder-1", externalId="order-1").idempotency_key
    given = a_submission(says_so, "key", externalId="order-1").idempotency_key
    assert given is not None
    assert given.key == "key"
    assert a_submission(says_so).idempotency_key is None
    assert a_submission(externalId="order-1").idempotency_key is None


def test_key_stands_for_the_request() -> None:
    """Another e-mail has another digest; the final content does not matter."""
    tenant = a_tenant(external_id_is_key=True)
    asked = a_submission(tenant, externalId="1")

    assert new_message(asked, an_email(text="rendered")).key == asked.idempotency_key
    other = a_submission(tenant, externalId="1", subject="Other")
    assert other.idempotency_key != asked.idempotency_key
