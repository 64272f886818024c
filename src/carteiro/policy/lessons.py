"""Lessons from history: when retries of a tenant's messages are in vain, and how long a wait is worth its retry.

A lesson is about messages of the tenant that it was learned from: nobody teaches another tenant anything, and its
evidence has no figure of another one. An outage of hours, or a flood of messages to one bad server, is one cause,
however many messages it takes: so the two days with the most failures do not count. One message that is sent ends the
lesson of a group until many in a row are lost again; some messages keep the usual policy, so that this is seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import timedelta
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from carteiro.model import MILLISECOND, History, Learned, MessageId, value
from carteiro.model.figures import Figures
from carteiro.policy.history import LOST, PAUSES, messages, slot_of, total
from carteiro.policy.wilson import bounds

LEAST: Final = 200  # messages, or retries, that a lesson is drawn from
MOST_SHARE: Final = 0.01  # of successes, at the upper bound
_DAYS_LEFT_OUT = 2
_SPARED: Final = 20  # one message of this number keeps the usual policy


@value
class Lesson:
    """A consequence of history for a failure of a tenant.

    ``in_vain``: retries send nothing. ``wasted``: slots of waits whose retries send nothing.
    """

    in_vain: Learned | None = None
    wasted: Mapping[int, Learned] = field(default_factory=lambda: MappingProxyType({}))

    def instead_of(
        self, wait: timedelta, later: Iterable[timedelta]
    ) -> tuple[timedelta, Learned] | None:
        """The first of the ``later`` waits that is not wasted, and the evidence; None: the usual wait is as good."""
        learned = self.wasted.get(_slot(wait))
        if learned is None:
            return None
        better = next(
            (each for each in later if each > wait and _slot(each) not in self.wasted), None
        )
        return None if better is None else (better, replace(learned, policy_wait=wait))


def lesson_of(group: str, history: History) -> Lesson | None:
    """The lesson of a tenant's history, if there is one."""
    figures = total(history)
    in_vain = None
    if history.lost_in_a_row >= LEAST:
        in_vain = _learned(group, messages(history)[1], _left(history, LOST))
    tried = range(len(PAUSES) + 1)
    found = {slot: _wasted(group, slot, history, figures) for slot in tried}
    wasted = {slot: each for slot, each in found.items() if each is not None}
    return Lesson(in_vain, wasted) if in_vain or wasted else None


def is_spared(message: MessageId) -> bool:
    """True if a message keeps the usual policy, whatever was learned; the same in every process."""
    digest = blake2b(message.encode(), digest_size=8).digest()
    return int.from_bytes(digest) % _SPARED == 0


def _slot(wait: timedelta) -> int:
    return slot_of(wait // MILLISECOND)


def _wasted(group: str, slot: int, history: History, figures: Figures) -> Learned | None:
    return _learned(group, figures[f"sent_after.{slot}"], _left(history, f"failed_after.{slot}"))


def _learned(group: str, sent: int, lost: int) -> Learned | None:
    count = sent + lost
    at_most = bounds(sent, count).high
    if count < LEAST or at_most >= MOST_SHARE:
        return None
    return Learned(group, count, sent, round(at_most, 5))


def _left(history: History, name: str) -> int:
    """The count without the days that have most of it."""
    counts = sorted(figures[name] for figures in history.days.values())
    return sum(counts[:-_DAYS_LEFT_OUT])
