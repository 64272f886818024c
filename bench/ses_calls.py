"""One side of the ses measure: mails that the adapter writes and sends, or a client that sends ready-made bytes."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from uuid_utils import uuid7

from carteiro.config import load
from carteiro.email.message import make_email
from carteiro.model import MessageId, Taken, TenantId
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers.ses.provider import SesProvider
from carteiro.providers.ses.settings import SesSettings
from figures import measured, report
from ours.shared import run
from smtp_mails import HTML, SENDER, SUBJECT, TEXT, ready_made, to

_REGION, _KEY_ID, _SECRET = "eu-west-1", "AKIATWIN", "not-a-secret"  # as the twin wants them
_LIMIT = timedelta(seconds=30)


async def _adapter(url: str, mails: int, at_once: int) -> None:
    parcels = [_parcel(number) for number in range(mails + 1)]
    told = {"region": _REGION, "endpoint_url": url, "default_from": SENDER}
    told |= {"access_key_id": _KEY_ID, "secret_access_key": _SECRET}
    provider = SesProvider(load().section(SesSettings).model_copy(update=told), _LIMIT)

    async def send(number: int) -> None:
        outcome = await provider.deliver(parcels[number], Handover(_LIMIT))
        assert isinstance(outcome, Taken), outcome

    await send(mails)
    await _measure("ses adapter", send, mails, at_once)
    await provider.close()


def _parcel(number: int) -> Parcel:
    email = make_email({"to": to(number), "subject": SUBJECT, "text": TEXT, "html": HTML})
    return Parcel(MessageId(str(uuid7())), TenantId("acme"), email, 1, 1, "request-1")


async def _bare(url: str, mails: int, at_once: int) -> None:
    raw = ready_made()
    config = AioConfig(retries={"total_max_attempts": 1}, max_pool_connections=at_once)
    async with AioSession().create_client(
        "sesv2",
        region_name=_REGION,
        endpoint_url=url,
        aws_access_key_id=_KEY_ID,
        aws_secret_access_key=_SECRET,
        config=config,
    ) as client:

        async def send(number: int) -> None:
            await client.send_email(
                FromEmailAddress=SENDER,
                Destination={"ToAddresses": [to(number)]},
                Content={"Raw": {"Data": raw}},
            )

        await send(mails)
        await _measure("bare aiobotocore", send, mails, at_once)


async def _measure(
    name: str, send: Callable[[int], Awaitable[None]], mails: int, at_once: int
) -> None:
    numbers, done = iter(range(mails)), 0

    async def some() -> None:
        nonlocal done
        for number in numbers:
            await send(number)
            done += 1

    with measured(name, mails, lambda: done) as figure:
        await asyncio.gather(*[some() for _ in range(at_once)])
    report(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--at-once", type=int, required=True)
    parser.add_argument("--adapter", action="store_true", help="else the bare client")
    asked = parser.parse_args()
    side = _adapter if asked.adapter else _bare
    run(side(f"http://127.0.0.1:{asked.port}", asked.mails, asked.at_once))
