"""Redriving and editing one dead letter, for the API and the console."""

from collections.abc import Mapping
from typing import Any

from carteiro.api.refusal import Refusal, found, not_found
from carteiro.dead_letters.redrive import revise
from carteiro.model import DeadLetter, MessageId, RedriveAnswer, Revision, TenantId
from carteiro.policy.tenancy import SendingRules
from carteiro.ports import Backend

WHAT = "dead letter"


async def found_letter(
    backend: Backend, identity: MessageId, *, tenant: TenantId | None
) -> DeadLetter:
    """The dead letter; a `Refusal` if there is none, or it is another tenant's."""
    letter = found(await backend.dead_letters.show(identity), WHAT)
    if tenant not in {None, letter.tenant}:
        raise not_found(WHAT)
    return letter


async def redrive_one(
    backend: Backend, identity: MessageId, *, tenant: TenantId | None, by: str
) -> None:
    """Send a dead message again; a `Refusal` says why not."""
    message = found(await backend.reading.message(identity, tenant=tenant), WHAT)
    [answer] = await backend.dead_letters.redrive([identity], by=by)
    if answer is RedriveAnswer.NOT_FOUND:
        raise Refusal(404, f"The message is not a dead letter: it is {message.state}")
    _check(answer)


async def revised(
    backend: Backend, letter: DeadLetter, changes: Mapping[str, Any], rules: SendingRules
) -> Revision:
    """The dead letter with these changes; a `Refusal` if its content is gone, `InvalidMessage` if they do not fit."""
    message = found(await backend.reading.message(letter.id), WHAT)
    if not message.content:
        raise _past_retention()
    return await revise(message, changes, backend=backend, rules=rules)


async def redrive_revised(
    backend: Backend, letter: DeadLetter, revision: Revision, *, by: str
) -> None:
    """Send a dead message again as this revision; a `Refusal` says why not."""
    [answer] = await backend.dead_letters.redrive([letter.id], by=by, revision=revision)
    _check(answer)


def _check(answer: RedriveAnswer) -> None:
    match answer:
        case RedriveAnswer.NOT_FOUND:
            raise not_found(WHAT)
        case RedriveAnswer.ALREADY:
            raise Refusal(409, "It was redriven already")
        case RedriveAnswer.NO_CONTENT:
            raise _past_retention()
        case RedriveAnswer.CHANGED:
            raise Refusal(409, "It was edited in the meantime: check it, and edit it again")
        case RedriveAnswer.REDRIVEN:
            return


def _past_retention() -> Refusal:
    return Refusal(409, "The content was pruned; this message cannot be redriven")
