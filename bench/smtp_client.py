"""Only our client: ready-made bytes over a number of connections, without a record, like the peer."""

import argparse
import asyncio
from datetime import timedelta

from carteiro.config import load
from carteiro.ports.provider import Handover
from carteiro.providers.smtp.client import Connection, Letter
from carteiro.providers.smtp.settings import SmtpSettings
from figures import measured, report
from ours.shared import run
from smtp_mails import SENDER, ready_made, to
from smtp_sink import HOST

_LIMIT = timedelta(seconds=30)


async def _send_all(port: int, mails: int, connections: int) -> None:
    raw = ready_made()
    numbers, done = iter(range(mails)), 0
    told = {"host": HOST, "port": port, "tls": "none"}
    options = load().section(SmtpSettings).model_copy(update=told)

    async def one(connection: Connection) -> None:
        nonlocal done
        for number in numbers:
            letter = Letter(SENDER, to(number), (), raw, is_international=False)
            await connection.send(letter, Handover(_LIMIT))
            done += 1

    opened = [await Connection.open(options, None) for _ in range(connections)]
    with measured("our client", mails, lambda: done) as figure:
        await asyncio.gather(*[one(connection) for connection in opened])
    report(figure)
    for connection in opened:
        connection.quit()
        await connection.closed()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    asked = parser.parse_args()
    run(_send_all(asked.port, asked.mails, asked.connections))
