"""The message that an e-mail becomes."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from carteiro.email import Email, make_email, restore_email
from carteiro.model import EMAIL, Delivery, Event, EventType, NewMessage, NewRecipient
from carteiro.path.accept import email_message
from support.builders import ACME


def an_email(**changes: Any) -> Email:
    """An e-mail to Ana; ``changes`` are its fields."""
    return make_email({"to": "ana@example.com", "subject": "Bom dia", "text": "Olá"} | changes)


def message_of(email: Email, **changes: Any) -> NewMessage:
    """The message that Acme's e-mail becomes."""
    return email_message(email, tenant=ACME, request_id="request-1", **changes)


def test_a_message_carries_the_e_mail() -> None:
    """What is committed holds the e-mail itself, and what people look it up by."""
    email = an_email(externalId="pedido-42")

    message = message_of(email)

    assert restore_email(message.content) == email
    assert (message.tenant, message.kind, message.request_id) == (ACME, EMAIL, "request-1")
    assert (message.to, message.subject) == ("ana@example.com", "Bom dia")
    assert message.external_id == "pedido-42"
    assert message.declares


def test_ids_are_new_and_sorted_by_time() -> None:
    """Each message has an id of its own, version 7, later ones greater."""
    first, second = message_of(an_email()), message_of(an_email())

    assert UUID(first.id).version == 7
    assert first.id < second.id


def test_the_timeline_begins_with_enqueued() -> None:
    """The first event is written with the message, and knows its request."""
    assert message_of(an_email()).events == (Event(EventType.ENQUEUED, {"requestId": "request-1"}),)


def test_what_is_not_given_has_defaults() -> None:
    """Due at once, of middling priority, for a day, sent again when in doubt."""
    message = message_of(an_email())

    assert (message.due, message.priority, message.ttl) == (None, 5, timedelta(hours=24))
    assert (message.delivery, message.recipient) == (Delivery.AT_LEAST_ONCE, None)
    assert message_of(an_email(), default_ttl=timedelta(hours=1)).ttl == timedelta(hours=1)


def test_what_is_given_is_kept() -> None:
    """Time, urgency, lifetime and delivery are the sender's choice."""
    later = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    message = message_of(
        an_email(scheduledAt=later, priority=1, ttl=1500, delivery="at_most_once"),
        default_ttl=timedelta(hours=1),
    )

    assert (message.due, message.priority) == (later, 1)
    assert message.ttl == timedelta(seconds=1.5)
    assert message.delivery is Delivery.AT_MOST_ONCE


def test_a_recipient_comes_along() -> None:
    """Who it is for is known by the ids that the tenant gave."""
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
