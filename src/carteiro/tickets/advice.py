"""What people may do about a dead ticket, by why it died: one text for the log and for alerts."""

from collections.abc import Mapping

from carteiro.tickets.ticket import Reason

_LOOK = "look into it, then republish it"  # what others put into the topic
_ADVICE: Mapping[str, str] = {
    "max_retries_exceeded": "mend what it failed of, then republish it",
    "permanent_error": "it was refused for good: have it put again as it should be and quarantine this one, "
    "or mend what refused it, then republish it",
    "unknown_task_type": "deploy a handler for its type, then republish it",
    "undecodable": "it is no ticket: quarantine it, and tell whoever wrote it",
}
_BE_QUICK = "; only its place is kept, so be quick: its payload is gone when its own topic drops it"


def advice(reason: Reason | str, *, is_whole: bool = True) -> str:
    """What to do, as the end of a sentence."""
    return _ADVICE.get(reason, _LOOK) + ("" if is_whole else _BE_QUICK)
