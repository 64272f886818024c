"""``carteiro worker``: worker and upkeep, without the API."""

from carteiro.app import Carteiro
from carteiro.cli import process
from carteiro.cli.desk import Place, grouped
from carteiro.cli.first_tenant import add_first_tenant
from carteiro.cli.metrics import metrics_parts
from carteiro.cli.options import ProviderName
from carteiro.cli.process import Part, run_together, stop_on_signals
from carteiro.config import Settings
from carteiro.observability.readiness import Role


@grouped
def worker(*, provider: ProviderName = None, place: Place) -> None:
    """Run a worker, with upkeep, until SIGTERM or Ctrl-C."""
    settings = place.shared_settings(provider=provider)
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
