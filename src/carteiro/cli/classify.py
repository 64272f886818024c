"""``carteiro classify``: the verdict on a provider's answer, and the changes that your own rules would make."""

import asyncio
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypeAlias

import typer

from carteiro.cli.desk import Common, grouped, refuse_memory, refuse_missing
from carteiro.cli.documents import document_of
from carteiro.cli.exit_codes import WrongUse
from carteiro.cli.histories import history_document, history_facts
from carteiro.cli.options import Since, in_words
from carteiro.cli.paging import pages
from carteiro.cli.printing import Column, Printer, note
from carteiro.cli.progress import Count, count_done
from carteiro.config import Settings, spec_of
from carteiro.config.providers import answers
from carteiro.errors import CarteiroError
from carteiro.model import EMAIL, Failure, History, MessageFilter, State, StoredMessage, value
from carteiro.policy import classify as classified
from carteiro.policy import consequences
from carteiro.policy.doubt import may_leave_doubt
from carteiro.policy.own_rules import overruled
from carteiro.policy.stage import Stage
from carteiro.ports import Backend
from carteiro.providers.answers import is_success, judged_again, provider_of
from carteiro.providers.explaining import (
    Asked,
    Explanation,
    explained,
    history_of,
    names_of_answers,
)
from carteiro.stores.open import open_backend, store_exists

_OF_SMTP = re.compile(r"\s*(?:[45]\d\d[ -]+[45]\.\d{1,3}\.\d{1,3}\b|55\d\b)", re.ASCII)
_UNREACHED = "NETWORK_ERROR"
_TOLD = ("code", "originalCode", "category", "retryable", "scope", "reason", "rule")
_FAILING = (State.FAILED, State.RETRY_SCHEDULED, State.EXPIRED)

Answer: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="ANSWER",
        help='The answer, as in a log: "550 5.7.1 …", "Throttling: …", a body in JSON, '
        '"HTTP 503", "Connection refused".',
    ),
]
OfStage: TypeAlias = Annotated[
    Stage | None, typer.Option("--stage", help="SMTP stage of the answer.")
]
OfProvider: TypeAlias = Annotated[
    str, typer.Option("--provider", help="Provider that answered (default: detected).")
]
Mx: TypeAlias = Annotated[str, typer.Option("--mx", help="Host that answered.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Judge the last failure of each stored message again, and list the verdicts that would change. "
        "Earlier attempts are ignored.",
    ),
]


@grouped
def classify(  # noqa: PLR0913 - one an option
    *,
    answer: Answer = None,
    stage: OfStage = None,
    provider: OfProvider = "",
    mx: Mx = "",
    dry_run: DryRun = False,
    since: Since = None,
    common: Common,
) -> None:
    """Explain the verdict on a provider's answer, or list the changes that your own rules would make."""
    settings, out = common.settings(), common.out
    if dry_run == (answer is not None):
        raise WrongUse("give either an answer or --dry-run")
    if since is not None and not dry_run:
        raise WrongUse("--since needs --dry-run: it limits how far back to look")
    if answer is None:
        if stage or provider or mx:
            raise WrongUse(
                "--stage, --provider and --mx need an answer: with --dry-run they come from the store"
            )
        asyncio.run(_tried(settings, out, since))
        return
    if is_success(answer):
        raise WrongUse("this answer reports success: there is no failure to judge")
    asked = Asked(answer, provider, stage, mx)
    _refuse_contradiction(asked)
    asyncio.run(_explain(asked, settings, out))


# --- one answer -------------------------------------------------------------------------------


def _refuse_contradiction(asked: Asked) -> None:
    """Reject options that contradict each other: they would silently give a wrong verdict."""
    if not asked.answer.strip():
        raise WrongUse("the answer is empty: copy it from the log")
    *most, last = names_of_answers()
    if asked.provider not in {"", *most, last}:
        should = f"should be {', '.join(most)} or {last}"
        raise WrongUse(f"--provider {asked.provider!r}: {should}")
    if not asked.provider or answers()[asked.provider].is_smtp:
        return
    if asked.stage or asked.mx:
        raise WrongUse(
            f"--stage and --mx are only for SMTP: answers of {asked.provider} have neither"
        )
    if _OF_SMTP.match(asked.answer):
        raise WrongUse(f"this is an SMTP reply: {asked.provider} never gives one")


async def _explain(asked: Asked, settings: Settings, out: Printer) -> None:
    told = explained(asked, settings)
    failure = told.failure
    facts: dict[str, object] = {
        "code": failure.code,
        "provider's code": failure.original_code,
        "category": failure.category,
        "whose fault": failure.scope,
        "rule": failure.rule,
        "because": told.why,
        "what happens": _what_happens(told),
        "if handed over": _if_handed_over(told, settings),
        "recipient": f"suppression: {_suppression(told)}",
        "send rate": "drops, for all workers" if consequences.throttles(failure) else None,
        "breaker": "may open" if consequences.may_open_breaker(failure) else "unchanged",
        "reason": failure.reason,
    }
    whole = document_of(failure)
    document = {name: whole[name] for name in _TOLD}
    history = await _history(asked, told, settings)
    if history is not None and history.days:
        facts |= history_facts(history)
        document["history"] = history_document(history)
    out.thing(document, facts)


async def _history(asked: Asked, told: Explanation, settings: Settings) -> History | None:
    """The history of such failures, of all tenants; None without a store, or if nobody wants to learn."""
    if settings.retry.learn == "off" or settings.store.startswith("memory:"):
        return None
    try:
        if not store_exists(settings):
            return None
        async with open_backend(settings, governs=False) as backend:
            judged = {told.judged, told.failure}
            return await history_of(asked, judged, told.provider, settings, backend.failures)
    except CarteiroError as error:  # the verdict does not need it
        note(f"The history is not shown: {error}")
        return None


def _what_happens(told: Explanation) -> str:
    if told.first_wait is None:
        return "no retry: dead letter, permanent_error"
    first = in_words(told.first_wait)
    if not told.is_charged:
        return f"retried until it expires, first after about {first}; not charged"
    return (
        f"retried, first after about {first}; "
        f"after {told.max_attempts} failures a dead letter, max_attempts_exceeded"
    )


def _suppression(told: Explanation) -> str:
    """The effect on the recipient's suppression; without a stage, also the effect at RCPT."""
    said, at_rcpt = told.suppression, told.suppression_at_rcpt
    if said == at_rcpt:
        return said
    return f"{said}; {at_rcpt} if it answered RCPT TO (--stage {Stage.RCPT})"


def _if_handed_over(told: Explanation, settings: Settings) -> str | None:
    if told.doubt is None:
        return None
    if told.doubt == "replayed":
        return (
            "in doubt: retried with the same idempotency key, so it is delivered once; no failover"
        )
    most = settings.delivery.max_in_doubt_resends
    return (
        f"in doubt: resent at most {most} times if at_least_once, never if at_most_once;"
        " then a dead letter, in_doubt; no failover"
    )


# --- the ledger's history ---------------------------------------------------------------------


@value
class _Verdict:
    """The meaning of a failure."""

    category: str
    retryable: bool
    scope: str


@value
class _Change:
    """A verdict that would change; one example for all equal changes."""

    code: str
    was: _Verdict
    would_be: _Verdict
    rule: str


_COLUMNS: tuple[Column[tuple[_Change, int, str]], ...] = (
    Column("messages", lambda row: row[1]),
    Column("code", lambda row: row[0].code, is_whole=True),
    Column("was", lambda row: _in_short(row[0].was)),
    Column("would be", lambda row: _in_short(row[0].would_be)),
    Column("rule", lambda row: row[0].rule),
    Column("for one", lambda row: row[2], is_whole=True),
)


class _Trial:
    """Today's verdicts compared with the stored ones; keeps one row for each kind of change."""

    def __init__(self, settings: Settings, tell: Count) -> None:
        self._settings = settings
        self._tell = tell
        self._changes: Counter[_Change] = Counter()
        self._examples: dict[_Change, str] = {}
        self.looked = 0

    async def look(self, backend: Backend, wanted: MessageFilter) -> None:
        """Judge the failures of these messages again, page by page."""
        async for page, _ in pages(partial(backend.reading.messages, wanted), limit=0):
            for message in page:
                self._judge(message)
            self.looked += len(page)
            self._tell(self.looked)

    def _judge(self, message: StoredMessage) -> None:
        before = message.failure
        if before is None or (message.in_doubt and may_leave_doubt(before.rule)):
            return  # rules do not settle a doubt
        provider = _provider_of(message, before)
        mx = spec_of(provider).host(self._settings)
        after = _again(before, provider, mx)
        if after is None:
            return
        after = overruled(after, self._settings.own_rules, provider=provider, mx=mx)
        if _verdict(before) != _verdict(after):
            change = _Change(before.code, _verdict(before), _verdict(after), after.rule)
            self._changes[change] += 1
            self._examples.setdefault(change, message.id)

    def rows(self) -> list[tuple[_Change, int, str]]:
        """The changes, the most frequent first."""
        return [(each, count, self._examples[each]) for each, count in self._changes.most_common()]


async def _tried(settings: Settings, out: Printer, since: datetime | None) -> None:
    """Judge the failures in the ledger again; nothing is written."""
    refuse_memory(settings)
    refuse_missing(settings)
    with count_done("judged again") as tell:
        trial = _Trial(settings, tell)
        async with open_backend(settings, governs=False) as backend:
            for state in _FAILING:
                wanted = MessageFilter(kind=EMAIL, state=state, created_after=since)
                await trial.look(backend, wanted)
    rows = trial.rows()
    out.rows(rows, _COLUMNS, _change_document)
    changed = sum(count for _, count, _ in rows)
    note(
        f"{trial.looked:,} failures checked, {changed:,} would get another verdict; nothing was changed."
    )


def _provider_of(message: StoredMessage, failure: Failure) -> str:
    """The provider of the attempt, without a region; detected from the answer if none is stored."""
    return message.provider.partition(":")[0] if message.provider else provider_of(failure)


def _again(failure: Failure, provider: str, mx: str) -> Failure | None:
    """Today's verdict without the operator's rules; None if no provider was called.

    Silence is what it was, and so is what was found out without an answer, as that a sender is missing.
    """
    is_answer = failure.rule.startswith(f"{provider}.")
    if failure.code == classified.timeout(provider).code and not is_answer:
        return replace(classified.timeout(provider), reason=failure.reason)
    if failure.code == _UNREACHED:
        return classified.network(failure.reason)
    again = judged_again(failure, mx=mx)
    is_found_out = again is not None and again.code != failure.code
    return failure if is_found_out and not failure.rule.startswith("own.") else again


def _verdict(failure: Failure) -> _Verdict:
    return _Verdict(failure.category.value, failure.retryable, failure.scope.value)


def _in_short(verdict: _Verdict) -> str:
    told = "retried" if verdict.retryable else "not retried"
    return f"{verdict.category}, {told}, {verdict.scope}"


def _change_document(row: tuple[_Change, int, str]) -> dict[str, Any]:
    change, count, example = row
    return {"messages": count} | document_of(change) | {"example": example}
