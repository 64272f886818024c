"""The request to Resend: every field of an e-mail, our ids, and the same bytes each time."""

from base64 import b64encode

import pytest

from carteiro.email.message import make_email
from carteiro.model import Rejected, Taken, TenantId
from carteiro.providers.resend.letter import write_letter
from support.resend_sending import again, an_account, key_of
from support.sending import SENDER, a_mail, sent
from support.working import a_parcel

CONTENT = b64encode(b"%PDF-1.7").decode()


async def test_html_of_white_space_is_not_sent() -> None:
    """The text would be hidden behind it."""
    async with an_account() as (twin, provider):
        await sent(provider, a_mail(html=" \n"))

    [mail] = twin.deliveries
    assert "html" not in mail.letter
    assert mail.letter["text"] == "t"


async def test_every_field_of_an_email_is_sent() -> None:
    """Under the names of the API."""
    parcel = a_mail(
        subject="Olá",
        html="<p>Olá</p>",
        cc=["bia@example.com"],
        bcc=["caio@bücher.example"],
        replyTo="ajuda@example.com",
        headers={"X-Order": "17", "List-Unsubscribe": "<https://example.com/u>"},
        attachments=[
            {"filename": "a.pdf", "contentType": "application/pdf", "content": CONTENT},
            {
                "filename": "logo.png",
                "contentType": "image/png",
                "content": CONTENT,
                "contentId": "logo",
            },
        ],
        **{"from": "vendas@example.com"},
    )
    async with an_account() as (twin, provider):
        outcome = await sent(provider, parcel)

    [mail] = twin.deliveries
    assert outcome == Taken(mail.id)
    assert mail.letter == {
        "from": "vendas@example.com",
        "to": ["ana@example.com"],
        "cc": ["bia@example.com"],
        "bcc": ["caio@xn--bcher-kva.example"],
        "reply_to": "ajuda@example.com",
        "subject": "Olá",
        "html": "<p>Olá</p>",
        "text": "t",
        "headers": {
            "Message-ID": f"<{parcel.message}.1@example.com>",
            "X-Order": "17",
            "List-Unsubscribe": "<https://example.com/u>",
        },
        "tags": [
            {"name": "carteiro-message", "value": parcel.message},
            {"name": "carteiro-tenant", "value": parcel.tenant},
            {"name": "carteiro-revision", "value": "1"},
            {"name": "carteiro-copies", "value": "2"},
        ],
        "attachments": [
            {"filename": "a.pdf", "content": CONTENT, "content_type": "application/pdf"},
            {
                "filename": "logo.png",
                "content": CONTENT,
                "content_type": "image/png",
                "content_id": "logo",
            },
        ],
    }


async def test_request_has_its_user_agent_and_key() -> None:
    """Without a user agent Resend answers 403."""
    parcel = a_mail()
    async with an_account() as (twin, provider):
        await sent(provider, parcel)

    [request] = twin.requests
    assert (request.method, request.path) == ("POST", "/emails")
    assert request.headers["authorization"] == f"Bearer {twin.api_key}"
    assert request.headers["user-agent"].startswith("carteiro/")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == key_of(parcel.message)


def test_each_attempt_has_the_same_bytes() -> None:
    """Other bytes under the same key would be refused."""
    parcel = a_mail(headers={"X-A": "1"})

    assert write_letter(again(parcel), sender=SENDER) == write_letter(parcel, sender=SENDER)


async def test_any_tenant_name_fits_into_a_tag() -> None:
    """Invalid characters are encoded, without colliding with another tenant."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    parcel = again(a_parcel(email), tenant=TenantId("Café & Cia./" + "x" * 300))
    async with an_account() as (twin, provider):
        await sent(provider, parcel)

    [mail] = twin.deliveries
    value = mail.letter["tags"][1]["value"]
    assert value.startswith("Caf_c3_a9_20_26_20Cia_2e_2fxxx")
    assert len(value) == 256


async def test_email_without_a_sender_fails() -> None:
    """There is no call."""
    async with an_account(options={"default_from": ""}) as (twin, provider):
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert outcome.failure.code == "SENDER_MISSING"
    assert "resend.default_from" in outcome.failure.reason
    assert twin.requests == []


@pytest.mark.parametrize("headers", [{"Bcc": "x@example.com"}, {"X-A": "a\r\nBcc: x@example.com"}])
async def test_forbidden_header_is_refused(headers: dict[str, str]) -> None:
    """From any entry point."""
    parcel = a_mail()
    email = parcel.content.model_copy(update={"headers": headers})
    async with an_account() as (twin, provider):
        outcome = await sent(provider, again(parcel, content=email))

    assert isinstance(outcome, Rejected)
    assert outcome.failure.code == "INVALID_PAYLOAD"
    assert twin.requests == []
