"""``carteiro tickets run`` in a process of its own, which is forked when all it needs is imported."""

import os
import sys
from collections.abc import Mapping

from carteiro.cli import main
from carteiro.tickets.consume import counter, kafka_log, runner, worker
from carteiro.tickets.dead_letters import publisher

PRELOADED = (counter, kafka_log, publisher, runner, worker)


def run_worker(log: str, environment: Mapping[str, str]) -> None:
    """Be the command, with these settings; what it says goes to this file."""
    os.environ.clear()
    os.environ.update(environment)
    said = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.argv = ["carteiro", "tickets", "run", "--app", "end_to_end.tickets.app"]
    main()
