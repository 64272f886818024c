"""Kill real processes many times, at named points and at random moments, and check the law.

    python tests/end_to_end/crash/prove.py --runs 20 --seed 1 --store postgres

Every run depends on the seed and its number alone: the messages, the victim, the place and the time
(as far as a scheduler allows it). When the law breaks, the store stays (of a server: its
dump), and the last lines say how to repeat the run (--first NUMBER --runs 1). The exit code is
0 only if the law held.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # a script's own folder is not enough

from carteiro.model import MessageId
from end_to_end.crash.child import Orders
from end_to_end.crash.children import NeverHappened, bring_to_rest, child, prepared
from end_to_end.crash.law import broken
from end_to_end.crash.places import POSTGRES, Place
from end_to_end.crash.points import LOCKED, POINTS, QUEUE_POINTS, Action, Plan
from end_to_end.crash.post_office import HOLD
from end_to_end.crash.stores import STORES, a_place
from end_to_end.crash.storm import Weather, storm
from support.postgres_server import dumped

Run: TypeAlias = Callable[[Place], list[MessageId]]

_LATEST = 8  # occurrence of a point
_REST_S = 300.0  # after many deaths on a slow machine, tasks that run alone wait for each other
_LINGERING_S = (
    2.0  # longer than the traffic, yet short enough when a task is suspected and runs alone
)


def main() -> int:
    """Run as often as requested; stop at the first run that breaks the law."""
    told = _arguments()
    began = time.monotonic()
    for number in range(told.first, told.first + told.runs):
        name, run = _chosen(Random(f"{told.seed}:{number}"), _points(told.store))
        _say(f"run {number}  {time.monotonic() - began:6.0f} s  {name}")
        faults = _faults(run, told.store)
        if faults:
            _complain(faults, told, number)
            return 1
    _say(f"the law held: {told.runs} runs, seed {told.seed}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="how many runs")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="what they are made from"
    )
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--store", choices=STORES, default="sqlite", help="on which")
    return parser.parse_args()


def _points(store: str) -> Sequence[str]:
    return [*POINTS, *QUEUE_POINTS] if store.startswith("redis+") else POINTS


def _chosen(chance: Random, points: Sequence[str]) -> tuple[str, Run]:
    seed = chance.getrandbits(32)
    if chance.random() < 0.3:  # a storm takes as long as three of the others
        weather = Weather(chance.randint(2, 4), chance.randint(5, 20), stops=chance.random() < 0.5)
        return f"{weather}", lambda place: storm(place, seed, weather)
    plans = [_plan(chance, points) for _ in range(chance.randint(1, 3))]
    name = ", ".join(f"{plan.action} at {plan.point} ({plan.occurrence})" for plan in plans)
    return name, lambda place: _hit_at_points(place, seed, plans)


def _plan(chance: Random, points: Sequence[str]) -> Plan:
    action: Action = "stop" if chance.random() < 0.3 else "kill"
    return Plan(chance.choice(points), chance.randint(1, _LATEST), action)


def _hit_at_points(place: Place, seed: int, plans: list[Plan]) -> list[MessageId]:
    """One process after another carries its plan out, each with its own traffic."""
    accepted = prepared(place, seed)
    for number, plan in enumerate(plans):
        orders = Orders(place, plan, seed + number, lingering_s=_LINGERING_S, grace_s=0.1)
        with child(orders) as victim:
            if plan.action == "stop" and victim.has_stopped():
                _take_over(place, plan)
                victim.tell(signal.SIGCONT)
            code = victim.wait_for_end()
            accepted += victim.accepted
        if code not in {0, -signal.SIGKILL}:  # else the point was not tested
            raise NeverHappened(f"the child ended with {code}, see its log")
    return accepted


def _take_over(place: Place, plan: Plan) -> None:
    if plan.point in LOCKED:
        time.sleep(HOLD.total_seconds() * 1.5)
    else:
        bring_to_rest(place, patience_s=_REST_S)


def _faults(run: Run, store: str) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="carteiro-prove-"))
    with a_place(store, folder) as place:
        try:
            accepted = run(place)
            bring_to_rest(place, patience_s=_REST_S)
            faults = broken(place, accepted)
        except Exception as error:  # noqa: BLE001 # what never came to rest breaks the law too
            faults = [f"{type(error).__name__}: {error}"]
        if faults and place.words is POSTGRES:
            (folder / "post.sql").write_bytes(dumped(place.store))
    if not faults:
        shutil.rmtree(folder)
        return []
    return [*faults, f"the store and the log of its processes: {folder}"]


def _complain(faults: list[str], told: argparse.Namespace, number: int) -> None:
    _say("\nThe law is broken:")
    for fault in faults:
        _say(f"  {fault}")
    again = f"--seed {told.seed} --first {number} --runs 1 --store {told.store}"
    _say(f"\nTo see it again: python {sys.argv[0]} {again}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
