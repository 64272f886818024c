"""``carteiro tickets run`` in a separate process, which is forked after all imports."""

import sys
from collections.abc import Mapping

from carteiro.cli import main
from carteiro.tickets.consume import counter, kafka_log, runner, worker
from carteiro.tickets.dead_letters import publisher
from support.forks import become

PRELOADED = (counter, kafka_log, publisher, runner, worker)


def run_worker(log: str, environment: Mapping[str, str]) -> None:
    """Run the command, with these settings; its output goes to this file."""
    become(environment, log=log)
    sys.argv = ["carteiro", "tickets", "run", "--app", "end_to_end.tickets.app"]
    main()
