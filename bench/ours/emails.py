"""The whole e-mail pipeline with the `noop` provider: accept in lists of 1,000, then drain in processes of their own.

``--failing-once PERCENT`` lets that share of the messages fail at its first attempt and be retried at once.
"""

import argparse
import tempfile
from datetime import timedelta
from pathlib import Path

from carteiro.model import Deferred, Outcome
from carteiro.policy import classify
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel
from carteiro.providers import email_kind
from carteiro.providers.noop import provider as noop
from figures import measured, report, say
from ours.shared import Begun, check_drained, drained, drained_together, opened, run, tenant

_LIST = 1000
_TAKEN = noop.NoopProvider.deliver
_FAILURE = classify.classify_smtp("451 4.3.0 Try again")
_SOON = timedelta(milliseconds=20)
HTML = (
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
        "html": HTML,
    }


class _CountingProvider(noop.NoopProvider):
    """Counts its calls; fails the first attempt of a share of the messages."""

    def __init__(self, failing: int, begun: Begun) -> None:
        self.failed = 0
        self._failing = failing
        self._begun = begun

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Take it, or fail it once."""
        if parcel.attempt == 1 and int(parcel.message[-4:], 16) % 100 < self._failing:
            self.failed += 1
            return Deferred(_FAILURE)
        self._begun.one()
        return await _TAKEN(self, parcel, handover)


async def _drain(folder: Path, mails: int, failing: int, *, is_alone: bool) -> None:
    begun = Begun(mails, folder, is_alone=is_alone)
    provider = _CountingProvider(failing, begun)
    noop.NoopProvider.deliver = provider.deliver  # type: ignore[assignment,method-assign]
    if failing:
        email_kind.PRESETS = {"gateway": RetryPolicy(5, _SOON, _SOON)}  # type: ignore[attr-defined]
    async with opened(folder, provider="noop", retry={"preset": "gateway"}) as post:
        figure = await drained(post, begun, name="mail drain")
    figure.count += provider.failed
    report(figure)


def main() -> None:
    """Fill a new file, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=20_000)
    parser.add_argument("--failing-once", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--phase", choices=["accept", "drain"], help="on a server: this one alone")
    parser.add_argument("--drain", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drain:
        is_alone = asked.workers == 1
        run(_drain(asked.drain, asked.mails, asked.failing_once, is_alone=is_alone))
        return
    with tempfile.TemporaryDirectory() as folder:
        if asked.phase != "drain":
            say(f"ours: accept {asked.mails:,} mails")
            run(_accept(Path(folder), asked.mails))
        if asked.phase != "accept":
            say(f"ours: drain them with {asked.workers}")
            options = ("--mails", asked.mails, "--failing-once", asked.failing_once)
            command = ("ours.emails", *options, "--drain", folder)
            figure = drained_together(*command, workers=asked.workers)
            run(check_drained(Path(folder)))
            report(figure)


if __name__ == "__main__":
    main()
