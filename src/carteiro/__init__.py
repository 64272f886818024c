"""Carteiro delivers every message or knows exactly why not."""

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
