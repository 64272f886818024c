"""``carteiro api``: the API, without a worker."""

from carteiro.cli import process
from carteiro.cli.desk import Place, grouped
from carteiro.cli.options import Host, NoConsole, Port, console_choice
from carteiro.cli.server import listen
from carteiro.cli.up import serve


@grouped
def api(
    *, host: Host = None, port: Port = None, no_console: NoConsole = False, place: Place
) -> None:
    """Run only the API with the console, until SIGTERM or Ctrl-C; run carteiro worker to send the messages."""
    settings = place.shared_settings(
        **{"api.host": host, "api.port": port, **console_choice(no_console=no_console)}
    )
    with listen(settings.api.host, settings.api.port) as listener:
        process.run(serve(settings, listener, works=False), settings=settings)
