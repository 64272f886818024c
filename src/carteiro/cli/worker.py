"""``carteiro worker``: worker and upkeep, without the API."""

from carteiro.app import Carteiro
from carteiro.cli import process
from carteiro.cli.desk import refuse_memory, told
from carteiro.cli.first_tenant import add_first_tenant
from carteiro.cli.metrics import metrics_parts
from carteiro.cli.options import ConfigFile, ProviderName, QueueUrl, StoreUrl
from carteiro.cli.process import Part, run_together, stop_on_signals
from carteiro.config import Settings, load
from carteiro.observability.readiness import Role


@told
def worker(
    *,
    config: ConfigFile = None,
    store: StoreUrl = None,
    queue: QueueUrl = None,
    provider: ProviderName = None,
) -> None:
    """Run a worker, with upkeep, until SIGTERM or Ctrl-C."""
    settings = load(file=config, overrides={"store": store, "queue": queue, "provider": provider})
    refuse_memory(settings)
    process.run(_work(settings), settings=settings)


async def _work(settings: Settings) -> None:
    stop = stop_on_signals()
    async with Carteiro.open(settings=settings) as post:
        await add_first_tenant(post.backend)
        pages = metrics_parts(post, answers_for=Role.WORKER)
        await run_together([worker_part(post), *pages], stop)


def worker_part(post: Carteiro) -> Part:
    """The worker as a part of this process."""
    return Part(post.run_worker, post.stop, post.stop_now)
