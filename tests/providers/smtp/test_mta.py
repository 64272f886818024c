"""A real mail server accepts our mail: encrypted, authenticated, and byte by byte as it was written."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carteiro.email.mime import write_mime
from carteiro.model import Deferred, Rejected, Taken
from carteiro.ports import Parcel
from carteiro.providers.smtp.provider import SmtpProvider
from carteiro.providers.smtp.settings import SmtpSettings
from support.provider_settings import usual
from support.sending import SENDER, a_mail, failure_of, id_of, sent
from support.smtp_mta import Mta, an_mta
from support.smtp_server import HOST, PASSWORD, USER

pytestmark = pytest.mark.servers

PDF = {"filename": "relatório.pdf", "contentType": "application/pdf", "content": "JVBERi0xLjc="}
LOGO = {"filename": "l.png", "contentType": "image/png", "content": "iVBOR0A=", "contentId": "logo"}
NO_USER = "nobody-here@example.com"
GREYLISTED = "greylisted@example.com"


@pytest.fixture(scope="module")
def mta() -> Iterator[Mta]:
    """The running server; the mails of each test have its id."""
    with an_mta() as started:
        yield started


@asynccontextmanager
async def to(mta: Mta, **changes: Any) -> AsyncIterator[SmtpProvider]:
    """A provider for the server, by STARTTLS and with the right password."""
    fields = {
        "host": HOST,
        "port": mta.port,
        "tls": "starttls",
        "ca_file": mta.authority.ca_file,
        "username": USER,
        "password": PASSWORD,
        "default_from": SENDER,
    }
    provider = SmtpProvider(usual(SmtpSettings, **(fields | changes)))
    try:
        yield provider
    finally:
        await provider.close()


def as_delivered(parcel: Parcel) -> bytes:
    """The mail as in a mailbox: with the line ends of a file."""
    written = write_mime(parcel.content, sender=SENDER, message=parcel.message, revision=1)
    return written.replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "Olá.\n.\n..\n.dot\r\n\rend"},
        {"text": "t", "html": "<p>Olá, José: está tudo bem?</p>" * 100},
        {"text": "x" * 5000, "subject": "日本語" * 40},
        {"text": "t", "html": "<img src='cid:logo'>", "attachments": [PDF, LOGO]},
        {"text": "t", "headers": {"List-Unsubscribe": f"<https://example.com/{'u' * 400}>"}},
        {"text": "lines\n" * 50_000},
    ],
    ids=["dots", "html", "long", "files", "header", "large"],
)
async def test_delivered_mail_equals_the_written_one(mta: Mta, fields: dict[str, Any]) -> None:
    """Byte by byte; the server's own id is the provider's."""
    parcel = a_mail(**fields)

    async with to(mta) as provider:
        outcome = await sent(provider, parcel)

    [mail] = await mta.mails(parcel.message)
    assert mail.endswith(as_delivered(parcel))
    assert f"{id_of(outcome)} <= {SENDER}" in mta.log()


async def test_mail_goes_by_implicit_tls_too(mta: Mta) -> None:
    """On its port."""
    parcel = a_mail()

    async with to(mta, tls="implicit", port=mta.tls_port) as provider:
        assert isinstance(await sent(provider, parcel), Taken)

    [mail] = await mta.mails(parcel.message)
    assert b"with esmtpsa" in mail


async def test_address_in_another_script_arrives(mta: Mta) -> None:
    """The server offers SMTPUTF8."""
    parcel = a_mail("josé@exämple.com")

    async with to(mta) as provider:
        assert isinstance(await sent(provider, parcel), Taken)

    [mail] = await mta.mails(parcel.message)
    assert "To: josé@xn--exmple-cua.com\n".encode() in mail


async def test_many_mails_over_few_connections_arrive_once_each(mta: Mta) -> None:
    """None lost, none twice."""
    parcels = [a_mail() for _ in range(60)]

    async with to(mta, connections=4) as provider:
        outcomes = await asyncio.gather(*[sent(provider, parcel) for parcel in parcels])

    counts = [len(await mta.mails(parcel.message)) for parcel in parcels]
    assert counts == [1] * 60
    assert len({id_of(outcome) for outcome in outcomes}) == 60


async def test_refused_copy_does_not_stop_the_mail_to_the_others(mta: Mta) -> None:
    """It is reported, with the server's text."""
    parcel = a_mail(cc=[NO_USER, "bia@example.com"], bcc=[GREYLISTED])

    async with to(mta) as provider:
        outcome = await sent(provider, parcel)

    assert isinstance(outcome, Taken)
    assert [(who, why.original_code) for who, why in outcome.refused] == [
        (NO_USER, "5.1.1"),
        (GREYLISTED, "4.7.1"),
    ]
    assert len(await mta.mails(parcel.message, count=2)) == 2


@pytest.mark.parametrize(
    ("parcel", "outcome", "code"),
    [
        (a_mail(NO_USER, cc=["bia@example.com"]), Rejected, "5.1.1"),
        (a_mail(GREYLISTED), Deferred, "4.7.1"),
        (a_mail(text="spam"), Rejected, "5.6.0"),
    ],
    ids=["no user", "greylisted", "content"],
)
async def test_refusal_is_reported_and_the_next_mail_goes_through(
    mta: Mta, parcel: Parcel, outcome: type, code: str
) -> None:
    """Over the same connection; the refused mail reaches nobody."""
    after = a_mail()

    async with to(mta, connections=1) as provider:
        refused = await sent(provider, parcel)
        await sent(provider, after)

    assert isinstance(refused, outcome)
    assert failure_of(refused).original_code == code
    assert len(await mta.mails(after.message)) == 1
    assert mta.delivered(parcel.message) == []


async def test_wrong_password_is_refused(mta: Mta) -> None:
    """By a real server."""
    async with to(mta, password="wrong") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).code == "535"


async def test_restarted_server_is_found_again(mta: Mta) -> None:
    """Old connections are gone; during the outage it is a temporary failure."""
    async with to(mta) as provider:
        first = await sent(provider)
        mta.stop()
        away = await sent(provider)
        mta.start()
        back = await sent(provider)

    assert isinstance(first, Taken)
    assert isinstance(away, Taken | Deferred)  # a kept connection may outlive its server
    assert isinstance(back, Taken)
