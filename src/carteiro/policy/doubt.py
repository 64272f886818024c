"""Failures that leave a doubt after the hand-over: no answer, and answers of an internal error.

Found by the rule that judged them. Providers decide by what they know of the call; this is for documentation.
"""

from carteiro.policy.consequences import RULINGS

SILENCE = frozenset({"timeout", "network"})

_STATUS = ".status."
_REQUEST_TIMEOUT, _SERVER_ERROR = 408, 500


def may_leave_doubt(rule: str) -> bool:
    """True if such a failure, after the hand-over, does not prove that nothing was taken."""
    name, _, status = rule.partition(_STATUS)
    if name and status.isdecimal():
        return int(status) >= _SERVER_ERROR or int(status) == _REQUEST_TIMEOUT
    return rule in SILENCE or (rule in RULINGS and RULINGS[rule].leaves_doubt)
