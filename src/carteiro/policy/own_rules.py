"""Rules that an operator writes: they come before those of Carteiro.

They judge answers of providers and timeouts that prove that nothing was handed over, never a timeout
after the hand-over: a doubt stays a doubt.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from re import _constants as node  # there is no public API to analyze a pattern
from re import _parser as parser
from typing import Any, NamedTuple

from carteiro.model import Category, Deferred, Failure, Outcome, Rejected, Scope, Taken, value
from carteiro.policy.stage import Stage

LONGEST_PATTERN = 200
_LONGEST_TEXT = 500  # maximum length of a reason
_MOST_STEPS = 5_000  # at each position of such a text: about 20 ms at worst

_ASCII = 128  # above it, different letters may be equal in another case
_REPEATS = frozenset({node.MAX_REPEAT, node.MIN_REPEAT, node.POSSESSIVE_REPEAT})
_PLAIN = frozenset(
    {node.LITERAL, node.NOT_LITERAL, node.ANY, node.IN, node.AT, node.CATEGORY, node.RANGE}
)


@value
class OwnRule:
    """Conditions on an answer, and its meaning if they hold; an empty condition always holds."""

    name: str
    category: Category
    retryable: bool
    scope: Scope
    provider: str = ""
    stage: Stage | None = None
    mx: str = ""
    code: str = ""
    enhanced: str = ""
    text: re.Pattern[str] | None = None


def overruled(
    failure: Failure, rules: Sequence[OwnRule], *, provider: str, mx: str = ""
) -> Failure:
    """The failure according to the first matching rule, else unchanged."""
    stage = stage_of(failure)
    for rule in rules:
        if _fits(rule, failure, provider, mx) and rule.stage in {None, stage}:
            name = f"own.{rule.name}"
            return replace(
                failure,
                category=rule.category,
                retryable=rule.retryable,
                scope=rule.scope,
                rule=f"{name}@{stage}" if stage else name,
            )
    return failure


def overruled_outcome(
    outcome: Outcome, rules: Sequence[OwnRule], *, provider: str, mx: str = ""
) -> Outcome:
    """The outcome with its failures according to the rules; Unknown and NotMade are not changed."""
    match outcome:
        case Rejected(failure):
            said = overruled(failure, rules, provider=provider, mx=mx)
            return Deferred(said) if said.retryable else Rejected(said)
        case Deferred(failure, retry_after):
            said = overruled(failure, rules, provider=provider, mx=mx)
            return Deferred(said, retry_after) if said.retryable else Rejected(said)
        case Taken(refused=refused) if refused:
            copies = [
                (address, overruled(each, rules, provider=provider, mx=mx))
                for address, each in refused
            ]
            return replace(outcome, refused=tuple(copies))
        case _:
            return outcome


def stage_of(failure: Failure) -> Stage | None:
    """The stage at which the failure's rule was applied, if known."""
    name = failure.rule.partition("@")[2]
    return Stage(name) if name else None


def _fits(rule: OwnRule, failure: Failure, provider: str, mx: str) -> bool:
    return (
        rule.provider in {"", provider}
        and rule.code in {"", failure.code}
        and rule.enhanced in {"", failure.original_code}
        and (not rule.mx or f".{mx.rstrip('.').lower()}".endswith(f".{rule.mx.lower()}"))
        and (rule.text is None or rule.text.search(failure.reason) is not None)
    )


# --- patterns ---------------------------------------------------------------------------------


def bounded_pattern(text: str) -> re.Pattern[str]:
    """The compiled pattern, ignoring case; `ValueError` if it is invalid or may be slow on some text.

    Servers may send anything, so the pattern must be fast on the worst text.
    """
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"should have at most {LONGEST_PATTERN} characters")
    try:
        pattern = re.compile(text, re.IGNORECASE)
        steps = _cost(parser.parse(text, re.IGNORECASE)).steps
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"should be a regular expression: {error}") from None
    if steps > _MOST_STEPS:
        raise ValueError(
            "should be fast on any text: at most one * or +, and otherwise few and short"
            " repetitions, none nested"
        )
    return pattern


class _Cost(NamedTuple):
    """The number of ways to match at one position, and the steps to try them all."""

    ways: int
    steps: int


def _cost(parts: Iterable[tuple[Any, Any]]) -> _Cost:
    """The maximum cost of parts in a row: each is tried again for every match of those before it."""
    ways, steps = 1, 0
    for kind, given in parts:
        part = _cost_of(kind, given)
        steps = min(steps + ways * part.steps, _MOST_STEPS + 1)
        ways = min(ways * part.ways, _MOST_STEPS + 1)
    return _Cost(ways, steps)


def _cost_of(kind: Any, given: Any) -> _Cost:  # noqa: ANN401 - the parser's own
    if kind in _PLAIN:
        return _Cost(1, 1)
    if kind is node.SUBPATTERN:
        return _cost(given[-1])
    if kind is node.BRANCH:
        branches = [_cost(branch) for branch in given[1]]
        count = max if _exclude_each_other(given[1]) else sum
        return _Cost(count(each.ways for each in branches), sum(each.steps for each in branches))
    if kind in _REPEATS:
        least, most, body = given
        return _repeated(int(least), min(int(most), _LONGEST_TEXT), _cost(body))
    raise re.error("only letters, classes, groups, alternatives and repetitions are allowed")


def _exclude_each_other(branches: Iterable[Any]) -> bool:
    """True if at most one of them can match at one position, as each begins with a different letter."""
    starts: list[tuple[Any, Any]] = [next(iter(branch), (None, 0)) for branch in branches]
    letters = {
        chr(given).lower() for kind, given in starts if kind is node.LITERAL and given < _ASCII
    }
    return len(letters) == len(starts)


def _repeated(least: int, most: int, body: _Cost) -> _Cost:
    """It can end after each round from the minimum on; a round is tried for every match of those before it."""
    ways, steps, so_far = 0, 0, 1
    for done in range(most + 1):
        ways += so_far if done >= min(least, most) else 0
        steps += so_far * body.steps
        if steps > _MOST_STEPS:
            return _Cost(_MOST_STEPS + 1, _MOST_STEPS + 1)
        so_far *= body.ways
    return _Cost(ways, steps)
