"""Conversion between columns and values: dead letters and the filters on them."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from carteiro.model import Cursor, DeadFilter, DeadLetter
from carteiro.policy.lifecycle import EXPIRED_UNSENT
from carteiro.stores.columns import FAR, in_ms, made
from carteiro.stores.cursors import key_of


def dead_letter_of(row: Sequence[Any]) -> DeadLetter:
    """A dead letter from the columns of `dead_letters_load`; one that was never tried has no failure there."""
    letter = made(DeadLetter, row)
    return replace(letter, failure=letter.failure or EXPIRED_UNSENT)


def finding(wanted: DeadFilter) -> str:
    """The statement whose index fits the filter best."""
    if wanted.tenant is not None:
        return "dead_letters_find_by_tenant"
    if wanted.code is not None:
        return "dead_letters_find_by_code"
    return "dead_letters_find" if wanted.reason is None else "dead_letters_find_by_reason"


def parameters_of(wanted: DeadFilter, cursor: Cursor | None) -> dict[str, object]:
    """The filter, as the parameters of the statements."""
    ends: list[tuple[int | str, ...]] = [(FAR, "")]
    if wanted.moved_before is not None:
        ends.append((in_ms(wanted.moved_before), ""))
    if cursor is not None:
        ends.append(key_of(cursor, (0, "")))
    before_at, before_id = min(ends)
    asked = asdict(wanted)
    del asked["moved_before"]
    return asked | {
        "text": None if wanted.text is None else _folded(wanted.text),
        "moved_after": -FAR if wanted.moved_after is None else in_ms(wanted.moved_after),
        "before_at": before_at,
        "before_id": before_id,
    }


def _folded(text: str) -> str:
    """The text with ASCII letters in lower case, as ``lower`` does in the database."""
    return text.encode("utf-8", "replace").lower().decode()
