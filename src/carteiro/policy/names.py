"""Rules for names of tenants and tasks, their labels, and keys of requests."""

import re
from typing import TypeGuard
from unicodedata import normalize

from carteiro.policy.audit import HIDDEN, harmless

LONGEST_NAME = 255
NAME_RULE = f"must be a name of 1 to {LONGEST_NAME} printable characters"

LABEL_RULE = f"must have at most {LONGEST_NAME} characters, all printable"

LONGEST_KEY = 128
KEY_RULE = f"must be 1 to {LONGEST_KEY} printable ASCII characters, not only spaces"
KEY_PATTERN = "^ *[!-~][ -~]*$"
_KEY = re.compile(KEY_PATTERN)


HOLDER_RULE = (
    "must be 1 to 64 letters, digits, spaces and . _ - and begin with a letter or digit; "
    f"it cannot end with a space, begin with {HIDDEN} or have characters of another width (Unicode's form NFKC)"
)
_HOLDER = re.compile(rf"(?!(?i:{HIDDEN}))[^\W_](?:[\w .-]{{0,62}}[\w.-])?")


def is_holder(given: str) -> bool:
    """True if it can name a key or token: it stands in every audit row.

    So it is neither an address nor a secret, and looks like no other one.
    """
    return bool(_HOLDER.fullmatch(given)) and normalize("NFKC", given) == given == harmless(given)


def is_name(given: object) -> TypeGuard[str]:
    """True if it can be stored, printed and distinguished from others."""
    return isinstance(given, str) and 0 < len(given) <= LONGEST_NAME and given.isprintable()


def is_label(given: str) -> bool:
    """True if it can be a label shown next to a name; it may be empty."""
    return len(given) <= LONGEST_NAME and given.isprintable()


def is_key(given: object) -> TypeGuard[str]:
    """True if it can be the key of a request: it must fit into a header unchanged."""
    return isinstance(given, str) and len(given) <= LONGEST_KEY and bool(_KEY.fullmatch(given))
