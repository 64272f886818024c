"""Mails for a provider, and their outcomes."""

from datetime import timedelta
from typing import Any

from carteiro.email.message import make_email
from carteiro.jobs.kind import Kind
from carteiro.model import EMAIL, Deferred, Failure, NotMade, Outcome, Rejected, Taken, Unknown
from carteiro.path.confirm import confirm
from carteiro.path.deliver import TimeLimits, deliver
from carteiro.ports import Handover, Parcel, Provider
from support.working import GATEWAY, LONG, a_parcel, always

SENDER = "loja@example.com"
SOON = timedelta(
    seconds=1
)  # for a server that will never answer; ample for one that does, on a busy machine, too


def a_mail(to: str = "ana@example.com", **fields: Any) -> Parcel:
    """A small mail; ``fields`` are those of a request."""
    return a_parcel(
        make_email(
            {"to": to, "subject": "s", "text": "t"} | fields,
            relay_headers=[name.lower() for name in fields.get("headers", ())],
        )
    )


async def sent(
    provider: Provider,
    parcel: Parcel | None = None,
    *,
    limit: timedelta = LONG,
    handover: Handover | None = None,
) -> Outcome:
    """The outcome of a parcel, within the timeout of a call."""
    kind = Kind(
        name=EMAIL,
        provider=provider.name,
        confirm=confirm,
        deliver=provider.deliver,
        policy=always(GATEWAY),
        declares=True,
        call_limit=limit,
    )
    return await deliver(kind, parcel or a_mail(), handover or Handover(limit), TimeLimits())


def failure_of(outcome: Outcome) -> Failure:
    """The failure of an outcome."""
    assert isinstance(outcome, Rejected | Deferred | NotMade | Unknown), outcome
    return outcome.failure


def id_of(outcome: Outcome) -> str:
    """The provider's id of an accepted mail."""
    assert isinstance(outcome, Taken), outcome
    return outcome.provider_id
