"""Histories, as people and programs read them: messages that failed, were tried again, and were sent or not."""

from datetime import timedelta
from typing import Any

from carteiro.cli.options import in_words
from carteiro.model import History
from carteiro.policy.history import PAUSES, by_attempt, by_slot, messages, redriven, span
from carteiro.policy.wilson import bounds


def history_document(history: History) -> dict[str, Any]:
    """A history as a document."""
    return {
        "days": span(history),
        **share_document(*messages(history)),
        "attempts": [
            {"attempt": attempt, "count": count, "sent": sent}
            for attempt, (count, sent) in by_attempt(history).items()
        ],
        "waits": [
            {"upToMs": None if slot == len(PAUSES) else PAUSES[slot], "count": count, "sent": sent}
            for slot, (count, sent) in by_slot(history).items()
        ],
        "redriven": share_document(*redriven(history)),
    }


def share_document(count: int, sent: int) -> dict[str, Any]:
    """Sent ones of some messages, and the bounds of their share."""
    low, high = bounds(sent, count)
    return {"count": count, "sent": sent, "low": round(low, 4), "high": round(high, 4)}


def history_facts(history: History) -> dict[str, object]:
    """A history for people."""
    attempts = [f"{number}: {_of(*each)}" for number, each in by_attempt(history).items()]
    waits = [f"{_wait(slot)}: {_of(*each)}" for slot, each in by_slot(history).items()]
    return {
        "history": _sentence("tried again", span(history), *messages(history)),
        "sent by attempt": ", ".join(attempts),
        "sent after": ", ".join(waits),
        "redriven": _sentence("redriven", span(history), *redriven(history)),
    }


def shares(count: int, sent: int) -> str:
    """The share of sent messages, with its bounds."""
    low, high = bounds(sent, count)
    return f"{sent / count:.1%}; 95 % bounds: {low:.1%} to {high:.1%}"


def _sentence(what: str, days: int, count: int, sent: int) -> str:
    if not count:
        return ""
    share = shares(count, sent)
    return (
        f"{_of(count, sent)} messages that were {what} within {in_days(days)} were sent ({share})"
    )


def in_days(count: int) -> str:
    """A number of days in words."""
    return f"{count} day" if count == 1 else f"{count} days"


def _of(count: int, sent: int) -> str:
    return f"{sent:,} of {count:,}"


def _wait(slot: int) -> str:
    low, high = (None, *PAUSES)[slot], (*PAUSES, None)[slot]
    if low is None or high is None:
        return f"under {_long(PAUSES[0])}" if low is None else f"over {_long(low)}"
    return f"{_long(low)} to {_long(high)}"


def _long(ms: int) -> str:
    return in_words(timedelta(milliseconds=ms))
