"""The whole pipeline on SQLite, through the smtp provider: accepted in lists, claimed, declared, sent, settled."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from carteiro.model import EMAIL, Outcome
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers.smtp import spec
from carteiro.providers.smtp.provider import SmtpProvider
from figures import measured, report
from ours.shared import drain, opened, run, tenant
from smtp_mails import HTML, SENDER, SUBJECT, TEXT, to
from smtp_sink import HOST

LIST = 1000
SLOTS = 200  # more than connections: while some mails are sent, others are declared and settled in long lists


class CountingProvider(SmtpProvider):
    """Says when the last mail has begun, so that nobody looks before."""

    left = 0
    begun = asyncio.Event()

    @staticmethod
    def how_many() -> int:
        """The number of unfinished mails."""
        return CountingProvider.left

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Count it, and hand it over."""
        CountingProvider.left -= 1
        if not CountingProvider.left:
            self.begun.set()
        return await super().deliver(parcel, handover)


async def _pass_through(folder: Path, port: int, mails: int, connections: int) -> None:
    spec.SmtpProvider = CountingProvider  # type: ignore[attr-defined]
    relay = {"host": HOST, "port": port, "tls": "none", "default_from": SENDER}
    settings = {
        "provider": "smtp",
        "smtp": relay | {"connections": connections, "messages_per_connection": 10_000},
        "workers": {"email_slots": SLOTS},
    }
    async with opened(folder, **settings) as post:
        CountingProvider.left = mails
        with measured("accept to sent", mails) as whole:
            with measured("accept", mails) as accepted:
                for first in range(0, mails, LIST):
                    await post.send_many([a_mail(first + index) for index in range(LIST)])
            with measured("claim to sent", mails) as sent:
                await drain(
                    post, EMAIL, begun=CountingProvider.begun, progress=CountingProvider.how_many
                )
    for figure in (whole, accepted, sent):
        report(figure)


def a_mail(number: int) -> dict[str, str]:
    """One of the mails."""
    return {
        "tenant": tenant(number),
        "to": to(number),
        "subject": SUBJECT,
        "text": TEXT,
        "html": HTML,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mails", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run(_pass_through(Path(place), asked.port, asked.mails, asked.connections))
