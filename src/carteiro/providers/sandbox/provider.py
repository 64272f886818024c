"""A local inbox that plays errors by address, so that every way a send can go is one address away.

Mail to ``sandbox.test`` is answered by its local part (`REPLIES`); all other mail is kept as if
sent. Nothing ever leaves the machine. What is kept in the inbox is what was delivered.
"""

import asyncio
import random
import re
from collections.abc import Mapping

from carteiro.email.message import Email, stored_content
from carteiro.model import Deferred, Failure, InboxMail, Outcome, Rejected, Taken
from carteiro.policy import classify
from carteiro.policy.rules.ruling import BAD_MESSAGE, THROTTLED, Ruling
from carteiro.policy.stage import Stage
from carteiro.ports.inbox import Letterbox
from carteiro.ports.provider import Features, Handover, Parcel
from carteiro.runtime.batcher import Gatherer

DOMAIN = "sandbox.test"

# What each local part plays; the reference page is made of this.
REPLIES: Mapping[str, str] = {
    "ok": "250 2.0.0: accepted",
    "throttle-N": "SES Throttling for the first N attempts, then accepted",
    "greylist": "451 4.7.1 twice, then accepted",
    "timeout": "never answers, before it receives the mail: SANDBOX_TIMEOUT",
    "bounce-550": "550 5.1.1: no such user, permanent",
    "full-552": "552 5.2.2: mailbox full, retryable",
    "reject": "SES MessageRejected: permanent",
    "slow-SECONDS": "accepted after that number of seconds; beyond the limit of a call, like `timeout`",
    "lost-reply": "receives the mail and never answers: in doubt",
    "random-PERCENT": "421 4.3.2 for that percentage of attempts, else accepted; the same seed gives the same results",
}

_GREYLISTED_ATTEMPTS = 2
_NUMBERED = re.compile(r"(throttle|slow|random)-(\d{1,9}(?:\.\d{1,3})?)")


class SandboxProvider:
    """Plays a provider; see `REPLIES`."""

    name = "sandbox"
    features = Features(is_remote=False, keeps_mail=True)

    def __init__(self, inbox: Letterbox, *, seed: int = 0) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - it is to be foreseen
        self._inbox = inbox
        self._keep: Gatherer[InboxMail, None] = Gatherer(self._keep_all)

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Play what the address asks for."""
        email: Email = parcel.content
        local, _, domain = email.to.rpartition("@")
        if domain.lower() != DOMAIN:
            return await self._take(parcel, email, handover)
        refusal = self._refusal(local.lower(), parcel)
        if refusal is not None:
            return Deferred(refusal) if refusal.retryable else Rejected(refusal)
        return await self._play(local.lower(), parcel, email, handover)

    def _refusal(  # noqa: PLR0911 - a table, one answer an address
        self, local: str, parcel: Parcel
    ) -> Failure | None:
        match _parts(local):
            case "throttle", times if parcel.attempt <= times:
                return _of_ses(THROTTLED, "Throttling", "Maximum sending rate exceeded")
            case "random", percent if self._dice.random() * 100 < percent:
                return classify.classify_smtp("421 4.3.2 Service not available, try later")
            case "greylist", _ if parcel.attempt <= _GREYLISTED_ATTEMPTS:
                return _at_rcpt("451 4.7.1 Greylisted, please try again later")
            case "bounce-550", _:
                return _at_rcpt("550 5.1.1 No such user here")
            case "full-552", _:
                return _at_rcpt("552 5.2.2 Mailbox full")
            case "reject", _:
                return _of_ses(BAD_MESSAGE, "MessageRejected", "Email content was rejected")
            case _:
                return None

    async def _play(self, local: str, parcel: Parcel, email: Email, handover: Handover) -> Outcome:
        match _parts(local):
            case "timeout", _:
                await asyncio.Event().wait()  # until the call's hard limit
            case "slow", seconds:
                await asyncio.sleep(seconds)
            case _:
                pass
        outcome = await self._take(parcel, email, handover)
        if local == "lost-reply":
            await asyncio.Event().wait()
        return outcome

    async def _take(self, parcel: Parcel, email: Email, handover: Handover) -> Outcome:
        provider_id = f"sandbox-{parcel.message}-{parcel.attempt}"
        mail = InboxMail(
            parcel.message,
            parcel.tenant,
            email.to,
            email.subject,
            stored_content(email),
            provider_id,
        )
        handover.begin()
        await self._keep(mail)
        return Taken(provider_id)

    async def _keep_all(self, mails: list[InboxMail]) -> list[None]:
        await self._inbox.keep(mails)
        return [None] * len(mails)


def _of_ses(ruling: Ruling, name: str, reason: str) -> Failure:
    """An answer of SES, judged by its rules."""
    code = f"SES_{classify.upper_snake(name)}"
    return classify.failure_of(
        ruling, code=code, original_code=name, reason=reason, rule=f"ses.{name}"
    )


def _at_rcpt(reply: str) -> Failure:
    return classify.classify_smtp(reply, stage=Stage.RCPT)


def _parts(local: str) -> tuple[str, float]:
    numbered = _NUMBERED.fullmatch(local)
    return (numbered.group(1), float(numbered.group(2))) if numbered else (local, 0.0)
