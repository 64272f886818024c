"""The request to SES: the raw mail, its recipients, and the tags for its events."""

from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest

from carteiro.email.message import make_email
from carteiro.model import Rejected, Scope, Taken, TenantId
from carteiro.policy.tags import tag_value
from carteiro.ports import Parcel
from support.builders import an_id
from support.sending import SENDER, a_mail, failure_of, id_of, sent
from support.ses_sending import an_account


async def test_mail_is_sent_as_it_is_written() -> None:
    """Raw: subject, bodies and files as in the mail, Message-ID and Date from the message's own id."""
    files = [{"filename": "a.txt", "contentType": "text/plain", "content": "b2k="}]
    parcel = a_mail(subject="Olá", html="<p>oi</p>", attachments=files)
    async with an_account() as (twin, provider):
        outcome = await sent(provider, parcel)

    [mail] = twin.mails
    read = message_from_bytes(mail.raw, policy=default)
    assert id_of(outcome) == mail.id
    assert (read["Subject"], read["From"], read["To"]) == ("Olá", SENDER, "ana@example.com")
    assert read["Message-ID"] == f"<{parcel.message}.1@example.com>"
    assert [part.get_filename() for part in read.iter_attachments()] == ["a.txt"]


async def test_blind_copies_are_in_the_destination_alone() -> None:
    """They are not in the mail; a repeated address gets it once."""
    parcel = a_mail(
        cc=["bia@example.com", "ana@example.com"], bcc=["caio@example.com", "bia@example.com"]
    )
    async with an_account() as (twin, provider):
        outcome = await sent(provider, parcel)

    [mail] = twin.mails
    assert isinstance(outcome, Taken)
    assert (mail.to, mail.cc, mail.bcc) == (
        ["ana@example.com"],
        ["bia@example.com"],
        ["caio@example.com"],
    )
    assert b"caio@example.com" not in mail.raw


async def test_same_message_is_the_same_bytes_each_time() -> None:
    """A receiver can recognise a repetition; the attempt is in a tag."""
    message, email = an_id(), make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    parcels = [
        Parcel(message, TenantId("acme"), email, attempt, 2, "request-1") for attempt in (1, 2)
    ]
    async with an_account() as (twin, provider):
        for parcel in parcels:
            await sent(provider, parcel)

    first, second = twin.mails
    assert first.raw == second.raw
    assert [mail.tags["carteiro-attempt"] for mail in twin.mails] == ["1", "2"]


async def test_ids_are_tags() -> None:
    """An event of SES with them can be matched to its message."""
    email = make_email({"to": "ana@example.com", "subject": "s", "text": "t"})
    parcel = Parcel(an_id(), TenantId("açaí & co"), email, 3, 2, "request-1")
    async with an_account() as (twin, provider):
        await sent(provider, parcel)

    assert twin.mails[0].tags == {
        "carteiro-message": parcel.message,
        "carteiro-tenant": "a_c3_a7a_c3_ad_20_26_20co",
        "carteiro-revision": "2",
        "carteiro-attempt": "3",
    }


def test_tag_is_unique_for_its_text() -> None:
    """Escape characters are escaped, and a text that is too long ends in its hash."""
    long = ["ä" * 255, "ä" * 254 + "ö"]

    assert tag_value("a b") != tag_value("a_20b")
    assert tag_value("plain-Name9") == "plain-Name9"
    assert [len(tag_value(text)) for text in long] == [256, 256]
    assert tag_value(long[0]) != tag_value(long[1])
    assert tag_value(long[0]) == tag_value(long[0])


async def test_configuration_set_is_sent() -> None:
    """Without one, events would not have the tags."""
    async with an_account(configuration_set="mail") as (twin, provider):
        unknown = await sent(provider)
        twin.configuration_sets.add("mail")
        known = await sent(provider)

    assert failure_of(unknown).code == "SES_NOT_FOUND"
    assert isinstance(known, Taken)
    assert twin.mails[0].configuration_set == "mail"


async def test_sender_of_the_email_is_used() -> None:
    """The default is for mails that name none."""
    async with an_account() as (twin, provider):
        await sent(provider, a_mail(**{"from": "conta@example.com"}))

    assert twin.mails[0].sender == "conta@example.com"


@pytest.mark.parametrize(
    ("fields", "options", "code", "scope"),
    [
        ({}, {"default_from": ""}, "SENDER_MISSING", Scope.SENDER),
        ({"to": "josé@example.com"}, {}, "SMTPUTF8_MISSING", Scope.RECIPIENT),
        ({"replyTo": "josé@example.com"}, {}, "SMTPUTF8_MISSING", Scope.RECIPIENT),
        (
            {"headers": {"X-SES-Source-Arn": "arn"}},
            {},
            "INVALID_PAYLOAD",
            Scope.MESSAGE,
        ),  # allowed by a setting
        ({"headers": {"X-Long": "x" * 998}}, {}, "INVALID_PAYLOAD", Scope.MESSAGE),
    ],
)
async def test_forbidden_mail_is_refused_here(
    fields: dict[str, Any], options: dict[str, Any], code: str, scope: Scope
) -> None:
    """For good, and without a call."""
    async with an_account(**options) as (twin, provider):
        outcome = await sent(provider, a_mail(**fields))

    assert isinstance(outcome, Rejected)
    assert (failure_of(outcome).code, failure_of(outcome).scope) == (code, scope)
    assert twin.connections == 0


async def test_domain_that_is_not_ascii_is_encoded() -> None:
    """In the destination and in the mail alike."""
    async with an_account() as (twin, provider):
        await sent(provider, a_mail("ana@exämple.com"))

    assert twin.mails[0].to == ["ana@xn--exmple-cua.com"]
    assert twin.mails[0].raw.isascii()
