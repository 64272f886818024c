"""Readiness of each role, by the state of ledger and queue."""

import pytest

from carteiro.observability.readiness import QueueState, Readiness, Role, Sight, readiness


@pytest.mark.parametrize(
    ("is_writable", "queue", "api", "worker"),
    [
        (True, None, Readiness.READY, Readiness.READY),
        (True, QueueState.REACHABLE, Readiness.READY, Readiness.READY),
        (True, QueueState.FULL, Readiness.DEGRADED, Readiness.READY),
        (True, QueueState.AWAY, Readiness.DEGRADED, Readiness.UNREADY),
        (False, None, Readiness.UNREADY, Readiness.UNREADY),
        (False, QueueState.REACHABLE, Readiness.UNREADY, Readiness.UNREADY),
        (False, QueueState.FULL, Readiness.UNREADY, Readiness.UNREADY),
        (False, QueueState.AWAY, Readiness.UNREADY, Readiness.UNREADY),
    ],
)
def test_each_role_needs_its_servers(
    is_writable: bool, queue: QueueState | None, api: Readiness, worker: Readiness
) -> None:
    """The API accepts without the queue, and is degraded; a worker needs it, and can empty a full one."""
    sight = Sight(is_writable, queue)

    assert readiness(Role.API, sight) is api
    assert readiness(Role.WORKER, sight) is worker
