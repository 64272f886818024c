"""Which codes a rule of the operator's own may wait for: one that no answer has would never fit, unnoticed."""

import difflib
import re
from collections.abc import Collection

from carteiro.config.providers import answers
from carteiro.policy.classify import bare_name

_REPLY = re.compile(r"[2-5][0-9]{2}")
_ALIKE = 0.75  # a name that is nearer to a known one is a slip, and no new error


def refuse_unfit(code: str, provider: str = "") -> None:
    """`ValueError` if no answer of the provider, or of any, can have the code.

    A name that is like no other may be new: providers add errors before we learn of them. Of a provider
    without a list nothing is known.
    """
    asked = [answers()[provider]] if provider else [*answers().values()]
    known = frozenset[str]().union(*(each.codes for each in asked))
    is_reply = _REPLY.fullmatch(code) and any(each.is_smtp for each in asked)
    if not known or code in known or is_reply:
        return
    meant = _meant(code, known)
    namer = code.partition("_")[0].lower()  # those with names of their own may have new ones
    if not meant and namer in answers() and answers()[namer].names and provider in {"", namer}:
        return
    hint = f"did you mean {' or '.join(meant)}?" if meant else _example(provider)
    raise ValueError(f"should be a code that answers of {provider or 'a provider'} have: {hint}")


def _meant(code: str, known: Collection[str]) -> list[str]:
    """The codes that were meant: by the name that a provider itself uses, else those that look like it."""
    named = [each.names.get(bare_name(code)) for each in answers().values()]
    if exact := [each for each in named if each in known]:
        return [each for each in exact if each]
    return difflib.get_close_matches(code.upper(), sorted(known), n=2, cutoff=_ALIKE)


def _example(provider: str) -> str:
    example = next(iter(answers()[provider].names.values()), "550") if provider else "550"
    return f"such as {example}; carteiro classify shows that of an answer"
