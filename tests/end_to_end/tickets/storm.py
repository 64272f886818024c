"""Several workers of one group, killed, stopped and asked to end at random moments, with servers that restart."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from random import Random

from end_to_end.tickets.lane import Lane, broken
from support.kafka_server import KafkaServer, a_kafka
from support.redis_server import RedisServer, a_redis
from support.services import PATIENCE
from support.ticket_topic import TicketTopic

_PARTITIONS = 3
_WORKERS = 3
_HEALTHY = 15  # alongside two that fail: enough to show that only the two are ill
_LONGEST_LULL_S = 0.5
_SESSION_MS = 2000  # time until the group misses a killed member


class Storm:
    """Workers, servers, and random events; all from a seed."""

    def __init__(self, lane: Lane, kafka: KafkaServer, redis: RedisServer, seed: int) -> None:
        self._lane = lane
        self._kafka = kafka
        self._redis = redis
        self._chance = Random(seed)
        self._workers: list[ForkServerProcess] = []
        self._number = 0

    def blow(self, times: int) -> None:
        """Put tickets and hit a process, repeatedly; in the end all workers stop in good order."""
        try:
            for _ in range(_WORKERS):
                self._workers.append(self._start())
            for number in range(times):
                self._put_some()
                time.sleep(self._chance.uniform(0, _LONGEST_LULL_S))
                self._hit(number, times)
            self._lane.wait_for_rest()
            self._stop_all()
        finally:
            for each in self._workers:
                each.kill()
                each.join(PATIENCE)

    def _start(self) -> ForkServerProcess:
        return self._lane.start(session_timeout_ms=str(_SESSION_MS))

    def _put_some(self) -> None:
        for each in range(_HEALTHY):
            seconds = self._chance.choice((0, 0, 0.01, 0.2))
            self._put("good", partition=each % _PARTITIONS, seconds=seconds)
        self._put("recovers", partition=self._anywhere(), fails=2)
        self._put("doomed", partition=self._anywhere(), fails=1_000_000, dead=True)
        self._lane.put_garbage(b"\xffno ticket", partition=self._anywhere())

    def _put(self, name: str, **fields: object) -> None:
        self._number += 1
        self._lane.put(f"{name}{self._number}", **fields)  # type: ignore[arg-type]

    def _anywhere(self) -> int:
        return self._chance.randrange(_PARTITIONS)

    def _hit(self, number: int, times: int) -> None:
        if number == times // 2:
            self._restart_kafka()  # once: it takes as long as all the others
            return
        ways: tuple[Callable[[int], None], ...] = (
            self._kill,
            self._kill,
            self._pause,
            self._replace,
            self._restart_redis,
        )
        self._chance.choice(ways)(self._chance.randrange(_WORKERS))

    def _kill(self, at: int) -> None:
        self._workers[at].kill()
        self._workers[at].join(PATIENCE)
        self._workers[at] = self._start()

    def _pause(self, at: int) -> None:
        """Stop one, at times for longer than the group waits for it."""
        pid = self._workers[at].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self._chance.uniform(0, 1.5 * _SESSION_MS / 1000))
        os.kill(pid, signal.SIGCONT)

    def _replace(self, at: int) -> None:
        self._workers[at].terminate()
        self._workers[at].join(PATIENCE)
        self._workers[at] = self._start()

    def _restart_redis(self, _: int) -> None:
        self._redis.kill()
        time.sleep(self._chance.uniform(0, 1))
        self._redis.start()

    def _restart_kafka(self) -> None:
        self._kafka.kill()
        self._kafka.start()

    def _stop_all(self) -> None:
        for each in self._workers:
            each.terminate()
        for each in self._workers:
            each.join(PATIENCE)
            # A process that was just started does not listen yet.
            ended = {0, -signal.SIGTERM}
            assert each.exitcode in ended, f"it ended with {each.exitcode}, see the log"


@contextmanager
def a_lane_of_its_own(folder: Path) -> Iterator[tuple[Lane, KafkaServer, RedisServer]]:
    """A lane on servers that may be killed."""
    with a_kafka() as kafka, a_redis() as redis:
        topic = TicketTopic(kafka, partitions=_PARTITIONS)
        yield Lane(topic, redis.url, folder), kafka, redis


def faults_after(folder: Path, *, seed: int, blows: int) -> list[str]:
    """The faults after a storm."""
    with a_lane_of_its_own(folder) as (lane, kafka, redis):
        Storm(lane, kafka, redis, seed).blow(blows)
        return broken(lane, disturbances=blows)
