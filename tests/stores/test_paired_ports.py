"""A pair: ports that are those of the ledger, and methods that reach the ledger alone."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from carteiro.ports import Backend
from carteiro.stores.paired_ports import Over, open_paired
from carteiro.stores.redis import open_redis
from carteiro.stores.sqlite import open_sqlite_ledger
from support.quick_store import sqlite_file

# Methods without one in the paired class. A new method of a port belongs here, or into that class;
# the second set of two has methods of the queue, bound when the pair opens.
_NOT_WRITTEN = {
    "PairedTenants": {"charge", "claimants", "fairness", "find", "list"},
    "PairedRecipients": {"delete", "list", "show"},
    "PairedDeadLetters": {
        *("find", "group", "moved", "oldest", "outlived", "overfull", "show", "sizes")
    },
    "PairedRedrives": {"due", "forget", "judge", "list", "set", "show", "start", "watched"},
    "PairedReading": {"events", "first", "message", "messages", "states", "unsettled"}
    | {"depths", "due", "place"},
    "PairedTracking": {"unsubscribe"},
    "PairedUpkeep": {"backup", "compact", "last_seen", "lead", "prune"} | {"expire"},
    "PairedTableQueue": {"has_requests", "pending", "rings", "wait"},
}


@pytest.mark.parametrize("paired", Over.__subclasses__(), ids=lambda each: each.__name__)
def test_every_method_of_a_port_is_assigned(paired: Any) -> None:
    """The type checker does not compare a paired port with its port."""
    [port] = get_args(paired.__orig_bases__[0])
    written = _methods(paired)

    assert _methods(port).keys() - written.keys() == _NOT_WRITTEN[paired.__name__]
    assert written == {name: _methods(port)[name] for name in written}


def _methods(owner: type) -> dict[str, list[tuple[str, object, object]]]:
    """The parameters of each public method: name, kind and default."""
    public = {name: each for name, each in vars(owner).items() if not name.startswith("_")}
    return {
        name: [(each.name, each.kind, each.default) for each in parameters.values()]
        for name, method in public.items()
        if callable(method)
        for parameters in [inspect.signature(method).parameters]
    }


async def test_ports_without_a_queue_are_the_ledgers_own(tmp_path: Path) -> None:
    """The contract suite runs these on ledgers alone: `_OF_THE_LEDGER` in `tests/contract/conftest.py`."""
    ledger = open_sqlite_ledger(sqlite_file(tmp_path))
    async with open_paired(ledger, open_redis("redis://127.0.0.1:1/0")) as pair:
        same = {
            each.name
            for each in fields(Backend)
            if getattr(pair.backend, each.name)
            is getattr(pair.ledger.backend, each.name)
            is not None
        }

    assert same == {
        *(
            "alerts",
            "audit",
            "automatic_redrives",
            "failures",
            "inbox",
            "keys",
            "marks",
            "rates",
            "reports",
        ),
        *("rollups", "sign_ins", "suppressions", "templates"),
    }
