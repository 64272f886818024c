"""The resend provider: from an e-mail to the id that the twin answers, with a number of concurrent calls."""

import argparse
import asyncio
import os
from datetime import timedelta

from carteiro.config import load
from carteiro.model import Taken
from carteiro.ports.provider import Handover
from carteiro.providers.resend.provider import ResendProvider
from carteiro.providers.resend.settings import ResendSettings
from figures import measured, report
from ours.shared import run
from resend_mails import KEY_NAME, SENDER, a_parcel

_LIMIT = timedelta(seconds=30)


async def _send_all(url: str, first: int, mails: int, calls: int) -> None:
    key = os.environ[KEY_NAME]
    told = {"api_key": key, "url": url, "default_from": SENDER, "connections": calls}
    provider = ResendProvider(load().section(ResendSettings).model_copy(update=told))
    parcels = [a_parcel(first + number) for number in range(mails)]
    waiting, done = iter(parcels), 0

    async def one() -> None:
        nonlocal done
        for parcel in waiting:
            outcome = await provider.deliver(parcel, Handover(_LIMIT))
            assert isinstance(outcome, Taken), outcome
            done += 1

    with measured("resend", mails, lambda: done) as figure:
        await asyncio.gather(*[one() for _ in range(calls)])
    report(figure)
    await provider.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--calls", type=int, required=True)
    asked = parser.parse_args()
    run(_send_all(asked.url, asked.first, asked.mails, asked.calls))
