"""Against an independent server of SES: it stores exactly the sent mail."""

from collections.abc import Iterator
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiobotocore.session import AioSession

from carteiro.model import Rejected
from support.sending import SENDER, a_mail, failure_of, id_of, sent
from support.ses_sending import a_provider
from support.ses_servers import MotoServer, a_moto_server
from support.ses_twin import KEY_ID, REGION, SECRET

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """One for all tests here: it takes seconds to start."""
    with a_moto_server(Path(tmp_path_factory.mktemp("moto")) / "server") as server:
        yield server


async def verify(moto: MotoServer, address: str) -> None:
    """Make it an identity that may send, as an owner of the account does."""
    async with AioSession().create_client(
        "sesv2",
        region_name=REGION,
        endpoint_url=moto.url,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    ) as client:
        known = await client.list_email_identities()
        names = {each["IdentityName"] for each in known["EmailIdentities"]}
        if address not in names:
            await client.create_email_identity(EmailIdentity=address)


def kept(moto: MotoServer) -> list[dict[str, Any]]:
    """The raw mails in moto."""
    everything = httpx.get(f"{moto.url}/moto-api/data.json").json()
    mails: list[dict[str, Any]] = everything["ses"]["RawMessage"]
    return mails


async def test_stored_mail_of_moto_equals_the_sent_one(moto: MotoServer) -> None:
    """Under the id that we keep, too."""
    await verify(moto, SENDER)
    parcel = a_mail(subject="Olá", html="<p>oi</p>", bcc=["caio@example.com"])
    async with a_provider(moto.url) as provider:
        outcome = await sent(provider, parcel)

    [mail] = [each for each in kept(moto) if each["id"] == id_of(outcome)]
    read = message_from_string(mail["raw_data"], policy=default)
    assert mail["source"] == SENDER
    assert set(mail["destinations"]) == {"ana@example.com", "caio@example.com"}
    assert read["Subject"] == "Olá"
    assert read["Message-ID"] == f"<{parcel.message}.1@example.com>"
    assert "caio" not in mail["raw_data"]


async def test_unverified_sender_is_refused(moto: MotoServer) -> None:
    """With moto's text, under the name that SES has for it."""
    async with a_provider(moto.url, default_from="stranger@elsewhere.test") as provider:
        outcome = await sent(provider)

    assert isinstance(outcome, Rejected)
    assert failure_of(outcome).code == "SES_MESSAGE_REJECTED"


async def test_unsupported_quota_call_means_no_quota(moto: MotoServer) -> None:
    """Moto has no such call."""
    async with a_provider(moto.url) as provider:
        assert await provider.quota() is None
