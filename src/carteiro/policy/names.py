"""What may be the name of a tenant or of a task."""

from typing import TypeGuard

LONGEST_NAME = 255
NAME_RULE = f"must be a name of 1 to {LONGEST_NAME} printable characters"


def is_name(given: object) -> TypeGuard[str]:
    """Whether it can be stored, printed and told from others."""
    return isinstance(given, str) and 0 < len(given) <= LONGEST_NAME and given.isprintable()
