"""Dramatiq on Redis: enqueue one by one, it has no lists; then drain with 32 threads.

No tenants.
"""

import argparse
import os
import threading

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from figures import measured, report

_THREADS = 32
_BODY = "x" * 989


def main() -> None:
    """Fill an empty server, then drain it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    left = jobs = parser.parse_args().jobs
    begun, counting = threading.Event(), threading.Lock()

    def no_op(body: str) -> None:  # noqa: ARG001 - it is handed over, that is all
        nonlocal left
        with counting:
            left -= 1
            if not left:
                begun.set()

    broker = RedisBroker(url=os.environ["BENCH_QUEUE"])
    dramatiq.set_broker(broker)
    actor = dramatiq.actor(no_op)
    with measured("enqueue", jobs) as enqueued:
        for _ in range(jobs):
            actor.send(_BODY)
    report(enqueued)
    worker = dramatiq.Worker(broker, worker_threads=_THREADS)
    with measured("drain", jobs, lambda: left) as drained:
        worker.start()
        begun.wait()
        broker.join(actor.queue_name, interval=10)
    worker.stop()
    report(drained)


if __name__ == "__main__":
    main()
