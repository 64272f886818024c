"""Check the syntax of e-mail addresses, and mask them for logs. Pure: no DNS, no I/O."""

import re
from collections.abc import Iterable
from functools import lru_cache

from email_validator import (
    SPECIAL_USE_DOMAIN_NAMES,
    EmailNotValidError,
    validate_email,
)
from email_validator.rfc_constants import CASE_INSENSITIVE_MAILBOX_NAMES

_LONGEST_ADDRESS = 254
_LONGEST_LOCAL_PART = 64
_LONGEST_DOMAIN = 253
_LONGEST_LABEL = 63
_LONGEST_OTHER_SCRIPT = 64  # characters of a domain that is not ASCII: far more than any has

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9]|-(?!-)){0,61}(?<!-)"
_PLAIN = re.compile(rf"({_ATOM}(?:\.{_ATOM})*)@((?:{_LABEL}\.)+([A-Za-z]{{2,63}}))", re.ASCII)

# Most addresses, in normal form already: recognized in less than half the time.
_USUAL = re.compile(
    r"([a-z0-9_+-]++(?:\.[a-z0-9_+-]++)*+)@(?:[a-z0-9]++(?:-[a-z0-9]++)*+\.)+([a-z]{2,63})"
)
_LONGEST_USUAL = 64  # so that no part of it can be too long

# Special cases of the library: passed to it, so that both ways agree.
_SPECIAL_TLDS = {name.rpartition(".")[2] for name in SPECIAL_USE_DOMAIN_NAMES} - {"test"}
_FOLDED_MAILBOXES = frozenset(CASE_INSENSITIVE_MAILBOX_NAMES)

_OUTSIDE = r"\s<>()\[\],;:\"\\"
_ADDRESS_IN_TEXT = re.compile(
    rf"(?:(?<![^{_OUTSIDE}@])[^{_OUTSIDE}@]+|\"[^\"\n]{{1,{_LONGEST_ADDRESS}}}\")"
    # Two addresses without a gap are masked together.
    rf"(?:(?:@[\w*-]+(?:\.[\w*-]+)*|@\[[^\]\s]*\])(?:[^{_OUTSIDE}@]*(?=@[\w*\[-]))?)+"
)
_SCRUBBED = re.compile(r"//\*\*\*@[^@]*")  # a masked server URL; its host stays visible
_BETWEEN_WORDS = re.compile(f"[{_OUTSIDE}]+")
_ESCAPED_AT = re.compile("%40", re.IGNORECASE)
_ENDING = re.compile(r"[\w-]{1,24}")


def judge_address(text: str) -> str | None:
    """The address in normal form (domain in lower case), or None if it is not an address."""
    usual = _USUAL.fullmatch(text) if len(text) <= _LONGEST_USUAL else None
    if usual is not None:
        local, top = usual.groups()
        if top not in _SPECIAL_TLDS and local not in _FOLDED_MAILBOXES:
            return text
    plain = _PLAIN.fullmatch(text)
    if plain is None or len(text) > _LONGEST_ADDRESS:
        return _judge_rare(text) if _is_worth_judging(text) else None
    local = plain[1]
    if len(local) > _LONGEST_LOCAL_PART:
        return None
    if plain[3].lower() in _SPECIAL_TLDS or local.lower() in _FOLDED_MAILBOXES:
        return _judge_rare(text)
    return f"{local}@{plain[2].lower()}"


def _is_worth_judging(text: str) -> bool:
    """True if the lengths allow an address; the library's cost grows with them."""
    local, at, domain = text.rpartition("@")
    longest = _LONGEST_DOMAIN if domain.isascii() else _LONGEST_OTHER_SCRIPT
    return (
        bool(at)
        and 0 < len(local) <= _LONGEST_LOCAL_PART
        and 0 < len(domain) <= longest
        and max(map(len, domain.split("."))) <= _LONGEST_LABEL
    )


class Unusual:
    """Counts the addresses passed to the library: each costs as much as hundreds of plain ones."""

    judged = 0


@lru_cache(maxsize=4096)
def _judge_rare(text: str) -> str | None:
    """Check everything beyond the plain form: other scripts, special names, invalid addresses."""
    Unusual.judged += 1
    try:
        return validate_email(
            text, check_deliverability=False, strict=True, test_environment=True
        ).normalized
    except EmailNotValidError:
        return None


def named_in(text: str, addresses: Iterable[str]) -> list[str]:
    """The addresses that occur in a text as a separate word, ignoring case."""
    words = {each.strip(".'").casefold() for each in _BETWEEN_WORDS.split(text)}
    return [each for each in addresses if each.casefold() in words]


def mask(address: str) -> str:
    """The address masked for logs: ``u***@e***.com``. Anything else becomes ``***``."""
    local, at, domain = address.rpartition("@")
    if not at:
        return "***"
    name, dot, ending = domain.rpartition(".")
    if not dot or not _ENDING.fullmatch(ending):
        return f"{_first(local)}***@{_first(domain)}***"
    return f"{_first(local)}***@{_first(name)}***.{ending}"


def _first(text: str) -> str:
    return text[:1] if text[:1].isalnum() else ""


def mask_text(text: str) -> str:
    """The text with every address in it masked; URLs that are masked already are not changed."""
    if "@" not in text and "%40" not in text:
        return text
    return _ADDRESS_IN_TEXT.sub(_masked, _ESCAPED_AT.sub("@", text))


def _masked(found: re.Match[str]) -> str:
    return found[0] if _SCRUBBED.fullmatch(found[0]) else mask(found[0])
