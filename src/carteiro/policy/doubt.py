"""Which failures leave a doubt once a message was handed over: silence, and answers that something broke inside.

By the rule that judged them. Providers decide by what they know of the call; this tells people beforehand.
"""

from carteiro.policy.consequences import RULINGS

SILENCE = frozenset({"timeout", "network"})

_STATUS = ".status."
_REQUEST_TIMEOUT, _SERVER_ERROR = 408, 500


def may_leave_doubt(rule: str) -> bool:
    """Whether such a failure does not prove, after the hand-over, that nothing was taken."""
    name, _, status = rule.partition(_STATUS)
    if name and status.isdecimal():
        return int(status) >= _SERVER_ERROR or int(status) == _REQUEST_TIMEOUT
    return rule in SILENCE or (rule in RULINGS and RULINGS[rule].leaves_doubt)
