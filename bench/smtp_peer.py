"""The peer: a bare aiosmtplib loop that sends ready-made bytes over a number of connections, without a record."""

import argparse
import asyncio

import aiosmtplib

from figures import measured, report
from ours.shared import run
from smtp_mails import SENDER, ready_made, to
from smtp_sink import HOST


async def _send_all(port: int, mails: int, connections: int) -> None:
    raw = ready_made()
    numbers, done = iter(range(mails)), 0

    async def one(client: aiosmtplib.SMTP) -> None:
        nonlocal done
        for number in numbers:
            await client.sendmail(SENDER, [to(number)], raw)
            done += 1

    clients = [
        aiosmtplib.SMTP(hostname=HOST, port=port, start_tls=False) for _ in range(connections)
    ]
    await asyncio.gather(*[client.connect() for client in clients])
    with measured("aiosmtplib", mails, lambda: done) as figure:
        await asyncio.gather(*[one(client) for client in clients])
    report(figure)
    await asyncio.gather(*[client.quit() for client in clients])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    asked = parser.parse_args()
    run(_send_all(asked.port, asked.mails, asked.connections))
