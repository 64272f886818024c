"""The whole pipeline on SQLite through smtp, alone or after a provider that refuses every connection.

The worker runs before anything is measured, and has found out by then who is dead.
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from carteiro import Carteiro
from carteiro.model import EMAIL
from carteiro.providers.smtp import spec
from figures import measured, report
from ours.shared import opened, run, settled
from smtp_mails import SENDER
from smtp_ours import LIST, SLOTS, CountingProvider, a_mail
from smtp_sink import HOST

_NOBODY = f"http://{HOST}:1"  # connections are refused there


async def _measure(folder: Path, asked: argparse.Namespace) -> None:
    spec.SmtpProvider = CountingProvider  # type: ignore[attr-defined]
    relay = {"host": HOST, "port": asked.port, "tls": "none", "default_from": SENDER}
    settings = {
        "provider": "resend, smtp" if asked.dead_first else "smtp",
        "resend": {"url": _NOBODY, "default_from": SENDER},
        "smtp": relay | {"connections": asked.connections, "messages_per_connection": 10_000},
        "workers": {"email_slots": SLOTS},
    }
    async with opened(folder, **settings) as post:
        worker = asyncio.create_task(post.run_worker())
        await _sent(post, worker, LIST)
        with measured("sent", asked.mails) as figure:
            await _sent(post, worker, asked.mails)
        post.stop()
        await worker
    report(figure)


async def _sent(post: Carteiro, worker: "asyncio.Task[None]", mails: int) -> None:
    CountingProvider.left = mails
    CountingProvider.begun.clear()
    for first in range(0, mails, LIST):
        await post.send_many([a_mail(first + index) for index in range(LIST)])
    counting = CountingProvider
    await settled(post, EMAIL, worker, begun=counting.begun, progress=counting.how_many)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--dead-first", action="store_true")
    os.environ["RESEND_API_KEY"] = "re_nobody"
    with tempfile.TemporaryDirectory() as place:
        run(_measure(Path(place), parser.parse_args()))
