"""A short run of ``make recovery``: the law holds, with any figures."""

from pathlib import Path

from end_to_end.crash.recovery import Size, a_setting, endure, lose

_SHORT = Size(seconds=2.0, backlog=100, window_s=0.5, as_usual=False)


async def test_old_queue_restored_under_load_revives_nothing_finished(
    tmp_path: Path,
) -> None:
    """Its waiting messages were sent since; newer ones are missing in it."""
    with a_setting("redis+sqlite", tmp_path) as setting:
        recovery = await lose(setting, "an old AOF restored", _SHORT)

    assert recovery.waited > 0
    assert recovery.faults == []


async def test_repeated_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    """Of workers, of the ledger's server and of the queue's."""
    with a_setting("redis+postgres", tmp_path) as setting:
        endured = await endure(setting, 5, _SHORT)

    assert endured.kills > 0
    assert endured.accepted > 0
    assert endured.faults == []
