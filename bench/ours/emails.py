"""The whole e-mail pipeline with the `noop` provider: accept in lists of 1,000, then drain in a process of its own.

``--failing-once PERCENT`` lets that share of the messages fail at its first attempt and be retried at once.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from carteiro.model import EMAIL, Deferred, Outcome
from carteiro.policy import classify
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers import email_kind
from carteiro.providers.noop import provider as noop
from figures import measured, report, say
from ours.shared import drain, opened, run, tenant

_LIST = 1000
_TAKEN = noop.NoopProvider.deliver
_FAILURE = classify.classify_smtp("451 4.3.0 Try again")
_SOON = timedelta(milliseconds=20)
_HTML = (
    "<!doctype html><html><body><h1>Your order</h1>"
    + "<p>It is on its way, see <a href='https://shop.example/o/1'>here</a>.</p>" * 8
    + "</body></html>"
)


async def _accept(folder: Path, mails: int) -> None:
    async with opened(folder) as post:
        with measured("mail accept", mails) as figure:
            for first in range(0, mails, _LIST):
                await post.send_many([_mail(first + index) for index in range(_LIST)])
    report(figure)


def _mail(index: int) -> dict[str, str]:
    return {
        "tenant": tenant(index),
        "to": f"customer{index}@example.com",
        "subject": f"Order {index}",
        "html": _HTML,
    }


class _CountingProvider(noop.NoopProvider):
    """Counts its calls; fails the first attempt of a share of the messages."""

    def __init__(self, mails: int, failing: int, begun: asyncio.Event) -> None:
        self.attempts = 0
        self._left = mails
        self._failing = failing
        self._begun = begun

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Take it, or fail it once."""
        self.attempts += 1
        if parcel.attempt == 1 and int(parcel.message[-4:], 16) % 100 < self._failing:
            return Deferred(_FAILURE)
        self._left -= 1
        if not self._left:
            self._begun.set()
        return await _TAKEN(self, parcel, handover)


async def _drain(folder: Path, mails: int, failing: int) -> None:
    begun = asyncio.Event()
    provider = _CountingProvider(mails, failing, begun)
    noop.NoopProvider.deliver = provider.deliver  # type: ignore[assignment,method-assign]
    if failing:
        email_kind.PRESETS = {"gateway": RetryPolicy(5, _SOON, _SOON)}  # type: ignore[attr-defined]
    async with opened(folder, provider="noop", retry={"preset": "gateway"}) as post:
        with measured("mail drain", mails) as figure:
            await drain(post, EMAIL, begun=begun, progress=lambda: provider.attempts)
    figure.count = provider.attempts
    report(figure)


def main() -> None:
    """Fill a new file, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=20_000)
    parser.add_argument("--failing-once", type=int, default=0)
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        run(_drain(asked.drain, asked.mails, asked.failing_once))
        return
    with tempfile.TemporaryDirectory() as folder:
        say(f"ours: accept {asked.mails:,} mails")
        run(_accept(Path(folder), asked.mails))
        say("ours: drain them")
        options = ["--mails", asked.mails, "--failing-once", asked.failing_once, "--drain", folder]
        subprocess.run([sys.executable, "-m", "ours.emails", *map(str, options)], check=True)


if __name__ == "__main__":
    main()
