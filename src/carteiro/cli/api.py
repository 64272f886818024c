"""``carteiro api``: the API, without a worker."""

from carteiro.cli import process
from carteiro.cli.desk import refuse_memory, told
from carteiro.cli.options import ConfigFile, Host, Port, QueueUrl, StoreUrl
from carteiro.cli.server import listen
from carteiro.cli.up import serve
from carteiro.config import load


@told
def api(
    *,
    config: ConfigFile = None,
    store: StoreUrl = None,
    queue: QueueUrl = None,
    host: Host = None,
    port: Port = None,
) -> None:
    """Run only the API, until SIGTERM or Ctrl-C; run carteiro worker to send the messages."""
    settings = load(
        file=config, overrides={"store": store, "queue": queue, "api.host": host, "api.port": port}
    )
    refuse_memory(settings)
    with listen(settings.api) as listener:
        process.run(serve(settings, listener, works=False), settings=settings)
