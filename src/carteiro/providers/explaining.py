"""The verdict on an answer, and what follows from it: for the command line and the console."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Literal

from carteiro.config import Settings, spec_of
from carteiro.config.providers import answers, is_remote
from carteiro.model import Failure, History, value
from carteiro.policy import consequences
from carteiro.policy.doubt import may_leave_doubt
from carteiro.policy.grouping import group_of
from carteiro.policy.history import together
from carteiro.policy.own_rules import overruled
from carteiro.policy.patience import wait_after
from carteiro.policy.stage import Stage
from carteiro.ports.failures import Failures
from carteiro.providers.answers import judge_answer, provider_of
from carteiro.providers.email_kind import retry_policy, routes_of

_MIDDLE = 0.5  # of the dice

_WHY = {
    "own": "one of your own rules decides; they are tried first",
    "login": "at login, every answer is about our account",
    "enhanced": "the enhanced code decides: the text names no other cause",
    "text": "this text means the same at every provider, and says more than the codes",
    "policy": "a policy rejection with unknown text: its scope depends on who answered",
    "subject": "only class and subject of the enhanced code are known",
    "code": "the reply code and its stage decide: nothing else is known",
    "class": "only the class of the code is known",
    "status": "the error name is unknown, so the status decides",
    "tls_error": "the server is not trusted: nothing is sent until it or the settings change",
    "network": "there was no answer: the connection failed",
    "timeout": "there was no answer in time",
    "unknown": "no rule matches, and an unknown failure may be temporary",
}


@value
class Asked:
    """An answer, and its context."""

    answer: str
    provider: str = ""
    stage: Stage | None = None
    mx: str = ""


@value
class Explanation:
    """A verdict: ``judged`` by the rules that come with Carteiro, ``failure`` with the operator's own.

    ``first_wait``: before the first retry, None: there is none. ``doubt``: what happens if the message may have been
    handed over before; None: that is impossible.
    """

    judged: Failure
    failure: Failure
    provider: str
    why: str
    first_wait: timedelta | None
    is_charged: bool
    max_attempts: int
    suppression: str
    suppression_at_rcpt: str
    doubt: Literal["replayed", "resent"] | None


def names_of_answers() -> list[str]:
    """The providers whose answers are known."""
    return [name for name, each in answers().items() if is_remote(name) or each.names]


def explained(asked: Asked, settings: Settings) -> Explanation:
    """The verdict on an answer, with these settings."""
    judged = judge_answer(asked.answer, provider=asked.provider, stage=asked.stage, mx=asked.mx)
    provider = asked.provider or provider_of(judged)
    failure = overruled(judged, settings.own_rules, provider=provider, mx=asked.mx)
    policy = retry_policy(settings)
    wait = wait_after(policy, failure, 1, _MIDDLE) if failure.retryable else None
    at_rcpt = failure
    if "@" not in failure.rule:
        at_rcpt = replace(failure, rule=f"{failure.rule}@{Stage.RCPT}")
    return Explanation(
        judged,
        failure,
        provider,
        _why(failure.rule),
        wait,
        policy.charges(failure),
        policy.max_attempts,
        consequences.suppression(failure),
        consequences.suppression(at_rcpt),
        _doubt(judged, asked.stage, provider),
    )


async def history_of(
    asked: Asked, failures: Iterable[Failure], provider: str, settings: Settings, port: Failures
) -> History | None:
    """The history of such failures, of all tenants; None if nobody wants to learn."""
    if settings.retry.learn == "off":
        return None
    found = await port.histories(sorted(_groups(asked, failures, provider, settings)))
    return together(each.whole for each in found)


def _groups(
    asked: Asked, failures: Iterable[Failure], provider: str, settings: Settings
) -> set[str]:
    used = routes_of(settings).names  # those on this machine play the answers of others
    names = {
        provider,
        *(each for each in used if spec_of(each).name == provider or not is_remote(each)),
    }
    rules = [""] if asked.stage else ["", *(f"@{each}" for each in Stage)]
    return {
        group_of(name, replace(failure, rule=f"{failure.rule}{rule}"))
        for failure in failures
        for name in names
        for rule in rules
    }


def _doubt(
    judged: Failure, stage: Stage | None, provider: str
) -> Literal["replayed", "resent"] | None:
    """The consequence if an earlier attempt may have been accepted. The operator's rules do not apply to it."""
    is_before = stage not in {None, Stage.DOT}
    if is_before or not may_leave_doubt(consequences.rule_name(judged)):
        return None
    return "replayed" if spec_of(provider).features.replays_for else "resent"


def _why(rule: str) -> str:
    first, _, rest = rule.partition("@")[0].partition(".")
    part = rest.partition(".")[0]
    if first != "own" and part in _WHY:
        return _WHY[part]
    if first not in answers():
        return _WHY[first]
    if answers()[first].is_smtp:
        return f"{part} is known for this text, which then decides before the codes"
    return answers()[first].why
