"""The measures of `bench/ours` and of SMTP still run, with tiny numbers; figures are not judged here."""

import importlib
import json
import sys

import pytest

from figures import HERE, printed_by
from http_server import serving
from smtp import a_sink
from support.http import an_email

TINY: dict[str, tuple[object, ...]] = {
    "ours.backlog": ("--waiting", 5000, "--tenants", 20, "--batches", 2),
    "ours.emails": ("--mails", 1000),
    "ours.latency": ("--count", 3),
    "ours.lists": ("--messages", 1000),
    "ours.passing": ("--jobs", 1000),
    "ours.redrives": ("--letters", 2000),
    "ours.suspects": ("--suspects", 2, "--call-ms", 1, "--seconds", 0.1, "--windows", 1),
    "ours.tasks": ("--jobs", 1000),
}
THROUGH_SMTP = ("chain_ours", "smtp_client", "smtp_ours")
WITH_SERVERS = {
    "ours.after_load",
    "ours.console",
    "ours.growth",
    "ours.operations",
    "ours.redis_memory",
    "ours.tickets",
}  # or much time; only loaded
SERVES, SHARED = "ours.http", "ours.shared"


def ran(module: str, *arguments: object) -> list[str]:
    """Run a module; the lines that it printed. An error if it fails."""
    return printed_by([sys.executable, "-m", module, *arguments])


def test_every_measure_is_known_here() -> None:
    """A new one must be added above."""
    found = {f"ours.{path.stem}" for path in HERE.glob("ours/*.py")} - {"ours.__init__"}

    assert found == {*TINY, *WITH_SERVERS, SERVES, SHARED}


@pytest.mark.parametrize("module", TINY)
def test_measure_runs(module: str) -> None:
    assert ran(module, *TINY[module])


@pytest.mark.parametrize("module", THROUGH_SMTP)
def test_measure_through_smtp_runs(module: str) -> None:
    with a_sink() as (port, _):
        assert ran(module, "--port", port, "--mails", 1000, "--connections", 3)


@pytest.mark.parametrize("module", WITH_SERVERS)
def test_measure_that_needs_a_server_can_be_loaded(module: str) -> None:
    assert callable(importlib.import_module(module).main)


def test_measured_api_accepts() -> None:
    with serving(SERVES) as server:
        figure = server.load(
            "single posts",
            path="/v1/email/send",
            body=json.dumps(an_email()),
            status=202,
            requests=10,
            connections=2,
        )

    assert figure.count == 10
