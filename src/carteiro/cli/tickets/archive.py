"""``carteiro tickets archive``: dead letters from their topic into MongoDB."""

from carteiro.cli import process
from carteiro.cli.desk import told
from carteiro.cli.options import ConfigFile
from carteiro.cli.process import Part, run_together, stop_on_signals
from carteiro.cli.tickets.page import page_part
from carteiro.config import Settings, load
from carteiro.errors import needing_extra


@told
def archive(*, config: ConfigFile = None) -> None:
    """Archive dead tickets in MongoDB and alert the Alertmanager, until SIGTERM or Ctrl-C.

    Several may run alongside each other. If MongoDB or Kafka is down, it logs that, waits and continues
    by itself.
    """
    settings = load(file=config)
    process.run(_archive(settings), settings=settings)


async def _archive(settings: Settings) -> None:
    with needing_extra("Tickets need", "tickets"):
        from carteiro.tickets.archive.archiver import Archiver  # noqa: PLC0415 - dear, and for this command alone

    stop = stop_on_signals()
    archiver = Archiver(settings.tickets)
    page = page_part(settings, archiver.page, lambda: archiver.waits_for)
    part = Part(archiver.run, archiver.stop, archiver.stop)
    await run_together([part, page], stop)
