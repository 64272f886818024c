"""Hand e-mail to Resend: one request a mail, with an idempotency key that identifies repetitions."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from importlib.metadata import version

import httpx

from carteiro.model import NotMade, Outcome, Rejected
from carteiro.ports.provider import Fault, Handover, Parcel, fault_of
from carteiro.providers.letters import written
from carteiro.providers.resend import answers
from carteiro.providers.resend.clients import Clients
from carteiro.providers.resend.letter import key_of, write_letter
from carteiro.providers.resend.pace import Pace
from carteiro.providers.resend.settings import ResendSettings
from carteiro.providers.resend.spec import SPEC

_CHECK_SECONDS = 10.0
_LONGEST_PAUSE = 5.0  # seconds to wait for a new limit; for longer the slot is given to others


class ResendProvider:
    """Resend takes a mail over when it answers with an id.

    The same message and revision are the same bytes and the same key each time. Repeated within a
    day, a call that got no answer sends nothing twice: it gets the id of the first.
    """

    name = SPEC.name
    features = SPEC.features

    def __init__(self, options: ResendSettings) -> None:
        self._options = options
        self.connections = options.connections
        self._emails = httpx.URL(f"{options.url}/emails")
        self._headers = {
            "Authorization": f"Bearer {options.api_key}",
            "Content-Type": "application/json",
            "Host": self._emails.netloc.decode("ascii"),
            "User-Agent": f"carteiro/{version('carteiro')}",  # without one, Resend answers 403
        }
        self._free = asyncio.Semaphore(options.connections)
        self._pace = Pace()
        self._clients = Clients()

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Send the mail to all its recipients: Resend takes all or none."""
        letter = written(parcel, self.name, self._options.default_from, write_letter)
        if isinstance(letter, Rejected):
            return letter
        handover.is_queued = True
        async with self._free:
            pause = await self._turn()
            handover.is_queued = False
            if pause:
                return NotMade(answers.held_back(pause), pause)
            return await self._hand_over(letter, key_of(parcel), handover)

    async def check(self) -> list[Fault]:
        """Problems of the account, if any: an unknown key, or an unverified domain of the sender."""
        try:
            async with self._clients.one() as client:
                answer = await client.get(
                    f"{self._options.url}/domains", headers=self._headers, timeout=_CHECK_SECONDS
                )
        except httpx.RequestError as error:
            return [fault_of(answers.unreached(error), "check resend.url, and the network to it")]
        return answers.faults(answer, self._options.default_from)

    async def close(self) -> None:
        """Close the connections."""
        await self._clients.close()

    async def _turn(self) -> timedelta | None:
        """Wait until the rate limit allows a call; if that takes too long, return the wait instead."""
        while wait := self._pace.take(time.monotonic()):
            if wait > _LONGEST_PAUSE:
                return timedelta(seconds=wait)
            await asyncio.sleep(wait)
        return None

    async def _hand_over(self, letter: bytes, key: str, handover: Handover) -> Outcome:
        headers = self._headers | {"Idempotency-Key": key, "Content-Length": str(len(letter))}
        request = httpx.Request(
            "POST", self._emails, headers=headers, stream=_Letter(letter, handover)
        )
        try:
            async with self._clients.one() as client:
                answer = await client.send(request)
        except httpx.RequestError as error:
            return answers.unanswered(error, handover)
        self._pace.heard(answer.headers, answer.status_code, time.monotonic())
        return answers.outcome_of(answer)


class _Letter(httpx.AsyncByteStream):
    """The body of a request; the hand-over begins with it, as no server takes a mail by its headers."""

    def __init__(self, content: bytes, handover: Handover) -> None:
        self._content = content
        self._handover = handover

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._handover.begin()
        yield self._content
