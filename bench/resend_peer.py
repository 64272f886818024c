"""The peer: a bare httpx client that posts ready-made bytes concurrently, and checks only the status."""

import argparse
import asyncio
import os

import httpx

from carteiro.providers.resend.letter import key_of, write_letter
from figures import measured, report
from ours.shared import run
from resend_mails import KEY_NAME, SENDER, a_parcel


async def _post_all(url: str, first: int, mails: int, calls: int) -> None:
    parcels = [a_parcel(first + number) for number in range(mails)]
    ready = iter([(key_of(each), write_letter(each, sender=SENDER)) for each in parcels])
    headers = {
        "Authorization": f"Bearer {os.environ[KEY_NAME]}",
        "Content-Type": "application/json",
    }
    limits = httpx.Limits(max_connections=calls, max_keepalive_connections=calls)

    done = 0

    async def one(client: httpx.AsyncClient) -> None:
        nonlocal done
        for key, content in ready:
            answer = await client.post("/emails", content=content, headers={"Idempotency-Key": key})
            assert answer.is_success, answer
            done += 1

    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits) as client:
        with measured("httpx", mails, lambda: done) as figure:
            await asyncio.gather(*[one(client) for _ in range(calls)])
    report(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--calls", type=int, required=True)
    asked = parser.parse_args()
    run(_post_all(asked.url, asked.first, asked.mails, asked.calls))
