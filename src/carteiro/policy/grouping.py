"""Failures that are alike: the same provider, rule and reason, however numbers, names and addresses in it differ.

Only words of the rules, and common words, are left of a reason: every other word may be a name, an id or content.
"""

import re
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Final

from carteiro.model import Failure
from carteiro.policy.rules import silence, systems, words
from carteiro.policy.rules.phrases import Said
from carteiro.policy.stage import Stage

LONGEST_REASON: Final = 160
_MOST_FAILURES = 1024  # few different ones, each often
_BYTES = 6
GROUP: Final = rf"^[0-9a-f]{{{2 * _BYTES}}}$"  # the form of an id

_QUOTED = re.compile(r"""<[^<>]*>|"[^"]*"|`[^`]*`|(?<!\w)'[^']*'(?!\w)|“[^”]*”|«[^»]*»""")
# A sign of a number, an address, a path, a host or an id: whatever is not written like a word.
_NAMED = re.compile(r"[\d@/\\=_#%]|[.:]\w")
_RULE = re.compile(rf"[A-Za-z0-9_.]{{1,80}}(?:@(?:{'|'.join(Stage)}))?")
_ERROR = re.compile(r"[A-Za-z]{1,60}")  # the name of an error, as services and Python write it
_OTHER = "other"
_HIDDEN = "…"
# A word with its signs before and after it.
_WORD = re.compile(r"[(\[]?([A-Za-z]+(?:['-][A-Za-z]+)*)[)\].,:;!?]*")

_COMMON = """
    a about accordance action added address again against all allow allows also although always an and any apply are
    associated at attempt attempted attempts because been before being below between but by call called calls can cannot
    cause caused change changed check claims code complete contact correct could current decoded delay did
    different does
    due during either else email ended error errors event every exception expected failed field fields for from
    further given had has have help how however if in index information instead into invalid is it its just key keys
    less list may maybe me message might missing more most must name need never next none not null object of off on
    once one only operation or other others our outcome parameter particular please possible present previous properly
    provider raised recorded request requested required result results retry same sending sent should since so some
    started state still sure take template than that the their them then there these they this those through time to
    try two type under unexpected unsupported until update upon use used user using validate value values variable via
    was way we were what when where which while who why will with within without worker workers wrong you your visit
    sorry table virtual token pass constraint satisfy specified complaints closing explanation included
    died hung live long longer accepted account answer application certificate connection database
"""


@lru_cache(_MOST_FAILURES)
def group_of(provider: str | None, failure: Failure) -> str:
    """The fingerprint of failures like this one."""
    return blake2b("\n".join(alike(provider, failure)).encode(), digest_size=_BYTES).hexdigest()


def alike(provider: str | None, failure: Failure) -> tuple[str, str, str, str]:
    """The things that failures of one group share: the provider, the rule, the name of the error, and the reason."""
    error = failure.original_code or ""
    return (
        provider or "",
        rule_of(failure),
        error if _ERROR.fullmatch(error) else "",
        plain_reason(failure.reason),
    )


def rule_of(failure: Failure) -> str:
    """The rule; a task may have put any text there."""
    return failure.rule if _RULE.fullmatch(failure.rule) else _OTHER


def plain_reason(reason: str) -> str:
    """The known words of a reason, in lower case; nothing is left of numbers, names, addresses and quoted parts."""
    told = _QUOTED.sub(" ", reason).split()
    said = Said(" ".join(word for word in told if not _NAMED.search(word)))
    known = " ".join(word for word in said.line.split() if word in _known())
    return known if len(known) <= LONGEST_REASON else known[:LONGEST_REASON].rpartition(" ")[0]


@lru_cache(_MOST_FAILURES)
def shown(provider: str | None, failure: Failure) -> tuple[str, str, str, str]:
    """The same as `alike`, for people: the known words as they were written."""
    return (*alike(provider, failure)[:3], readable_reason(failure.reason))


def readable_reason(reason: str) -> str:
    """A reason with its known words as they were written; the others after the first are ``…``."""
    parts: list[str] = []
    for token in _QUOTED.sub(" … ", reason).split():
        word = _WORD.fullmatch(token)
        is_known = word is not None and _known().issuperset(Said(word[1]).line.split())
        if is_known or parts[-1:] not in ([], [_HIDDEN]):
            parts.append(token if is_known else _HIDDEN)
    text = " ".join(parts)
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}{_HIDDEN}"


@cache
def _known() -> frozenset[str]:
    """Words that are safe to show; none has a digit."""
    rules = [*words.TEXT_RULES, *(rule for each in systems.SYSTEMS for rule in each.rules)]
    listed = {phrase for rule in rules for phrase in rule.phrases}
    listed.update(*(each.signs for each in systems.SYSTEMS), silence.PHRASES, words.OF_NOBODY)
    different = {*" ".join(listed).split(), *_COMMON.split()}
    return frozenset(word for word in Said(" ".join(sorted(different))).words if word.isalpha())
