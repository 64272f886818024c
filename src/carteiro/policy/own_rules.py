"""Rules that an operator writes: they decide before those that come with Carteiro.

They are asked about what a provider answered, never about silence after the hand-over: what is in
doubt stays so.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from re import _constants as node  # there is no public way to look into a pattern
from re import _parser as parser
from typing import Any

from carteiro.model import Category, Deferred, Failure, Outcome, Rejected, Scope, Taken, value
from carteiro.policy.stage import Stage

LONGEST_PATTERN = 200
_MOST_WAYS = 2_500  # to try at each place of a text of at most 500 characters: 20 ms at worst
_LONGEST_TEXT = 500

_REPEATS = frozenset({node.MAX_REPEAT, node.MIN_REPEAT, node.POSSESSIVE_REPEAT})
_PLAIN = frozenset(
    {node.LITERAL, node.NOT_LITERAL, node.ANY, node.IN, node.AT, node.CATEGORY, node.RANGE}
)


@value
class OwnRule:
    """What must hold of an answer, and what it then means; an empty condition always holds."""

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
    """The failure as the first rule that fits it wants it, else as it was."""
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
    """The outcome with its failures as the rules want them; what is in doubt, or was not made, as it is."""
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
    """The stage that the failure's rule was applied at, if that is known."""
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
    """The pattern, in any case of letters; `ValueError` if it is none, or could take long on some text.

    Servers say what they like, so that it must be cheap on the worst of texts.
    """
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"should have at most {LONGEST_PATTERN} characters")
    try:
        pattern = re.compile(text, re.IGNORECASE)
        ways = _ways(parser.parse(text, re.IGNORECASE))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"should be a regular expression: {error}") from None
    if ways > _MOST_WAYS:
        message = "should be quick on any text: at most one * or +, none inside another repetition"
        raise ValueError(message)
    return pattern


def _ways(parts: Iterable[tuple[Any, Any]]) -> int:
    """In how many ways the parts could match at one place, at most."""
    ways = 1
    for kind, given in parts:
        ways = min(ways * _ways_of(kind, given), _MOST_WAYS + 1)
    return ways


def _ways_of(kind: Any, given: Any) -> int:  # noqa: ANN401 - the parser's own
    if kind in _PLAIN:
        return 1
    if kind is node.SUBPATTERN:
        return _ways(given[-1])
    if kind is node.BRANCH:
        return sum(_ways(branch) for branch in given[1])
    if kind in _REPEATS:
        least, most, body = given
        times = min(int(most), _LONGEST_TEXT)
        return int((times - min(int(least), times) + 1) * _ways(body) ** times)
    raise re.error("only letters, classes, groups, alternatives and repetitions are allowed")
