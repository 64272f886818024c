"""Carteiro delivers every message or knows exactly why not."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carteiro.app import Carteiro
    from carteiro.errors import NotAccepted
    from carteiro.model import (
        Accepted,
        CancelAnswer,
        Delivery,
        NotStored,
        RedriveAnswer,
        Replayed,
        State,
        StoredMessage,
        TimelineEvent,
    )
    from carteiro.policy.waiting import Waiting, Why

__all__ = [
    "Accepted",
    "CancelAnswer",
    "Carteiro",
    "Delivery",
    "NotAccepted",
    "NotStored",
    "RedriveAnswer",
    "Replayed",
    "State",
    "StoredMessage",
    "TimelineEvent",
    "Waiting",
    "Why",
]
_ELSEWHERE = {
    "Carteiro": "carteiro.app",
    "NotAccepted": "carteiro.errors",
    "Waiting": "carteiro.policy.waiting",
    "Why": "carteiro.policy.waiting",
}


def __getattr__(name: str) -> object:
    """Import a name when it is used first: a command that needs no library starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_ELSEWHERE.get(name, "carteiro.model")), name)
    return found
