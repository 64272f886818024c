"""``carteiro tickets run``: a worker of the ticket lane."""

from dataclasses import replace
from typing import Annotated

import typer

from carteiro.cli import process
from carteiro.cli.desk import told
from carteiro.cli.options import ConfigFile
from carteiro.cli.process import Part as ProcessPart
from carteiro.cli.process import leave_at_once, run_together, stop_on_signals
from carteiro.cli.tickets.page import page_part
from carteiro.config import Settings, load
from carteiro.errors import ConfigError, needing_extra
from carteiro.observability.tracing import open_tracing
from carteiro.tickets import events
from carteiro.tickets.consume.handlers import Tickets, load_app

App = Annotated[
    str | None,
    typer.Option(
        help="Module with the handlers, as Python imports it: my.module, or my.module:variable."
    ),
]


@told
def run(*, app: App = None, config: ConfigFile = None) -> None:
    """Process the tickets of a Kafka topic until SIGTERM or Ctrl-C.

    Handlers are async functions in your module, each decorated with @tickets.handler("TYPE"); types
    under ticket_urls in the settings are posted to a URL instead.
    """
    settings = load(file=config)
    tickets = load_app(app, settings.presets) if app else Tickets()
    if not len(tickets) and not settings.ticket_urls:
        raise ConfigError(
            "no handlers: name a module with --app my.module, or add URLs under [ticket_urls]"
        )
    process.run(_work(settings, tickets), settings=settings)


async def _work(settings: Settings, tickets: Tickets) -> None:
    with needing_extra("Tickets need", "tickets"):
        from carteiro.tickets.consume.runner import HandlersGoOn  # noqa: PLC0415 - dear, and for this command alone
        from carteiro.tickets.consume.worker import TicketWorker  # noqa: PLC0415 - as above

    stop = stop_on_signals()
    try:
        async with open_tracing(settings.tracing.target, settings.tracing.limits) as tracing:
            urls = settings.ticket_urls
            worker = TicketWorker(settings.tickets, tickets, urls=urls, tracing=tracing)
            waits, paused = lambda: worker.waits_for, lambda: worker.paused
            page = page_part(settings, worker.page, waits, paused=paused)

            async def work() -> None:
                """Keep the page until all has ended, so that it shows the last tickets, too."""
                try:
                    await worker.run()
                finally:
                    page.stop()

            part = ProcessPart(work, worker.stop, worker.stop_now)
            await run_together([part, replace(page, stop=_nothing)], stop)
    except HandlersGoOn as error:  # the loop would wait for them for ever
        events.handlers_go_on(str(error))
        leave_at_once()


def _nothing() -> None:
    """It is stopped by another."""
