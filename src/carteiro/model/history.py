"""Histories of failures: messages that failed and were tried again, and the evidence that they give."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from types import MappingProxyType

from carteiro.model.basics import value
from carteiro.model.failure_groups import FailureGroup
from carteiro.model.figures import Figures


@value
class History:
    """Results of a failure group in its latest days (see `carteiro.policy.history`).

    ``days``: figures by day. ``lost_in_a_row``: messages that were lost since one of them was sent.
    """

    days: Mapping[int, Figures] = field(default_factory=lambda: MappingProxyType({}))
    lost_in_a_row: int = 0


@value
class GroupHistory:
    """The history of a failure group. ``without_largest``: without the tenant that has most of it.

    ``tenants``: the number of tenants that have a part in it.
    """

    group: FailureGroup
    whole: History
    without_largest: History
    tenants: int


@value
class Learned:
    """Evidence for a decision that differs from the retry policy.

    Of ``count`` messages of the tenant that failed in this group, or of retries after a like wait, ``sent`` were
    sent: in the long run at most the share ``at_most``. ``policy_wait``: the wait that the policy would have.
    """

    group: str
    count: int
    sent: int
    at_most: float
    policy_wait: timedelta | None = None
