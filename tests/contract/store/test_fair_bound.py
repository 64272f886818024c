"""Store, fair: the bound in claim order, for any tenants, weights, workers and backlogs.

Between two turns of i, j gets at most 3·w_j/w_i + 3 jobs, also if j leaves and returns; a newcomer
that is not ahead waits for at most one turn of each other tenant; and no tenant with ready work
and free capacity is skipped.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import EMAIL, KindName, Lease, LeasedJob, Tenant
from carteiro.policy.fairness import stride
from carteiro.ports import Backend
from support.builders import TASK, a_message, a_task, a_tenant, retry, sent
from support.clock import StoreClock
from support.set_ups import PROPERTY, SetUp
from support.steps import accepted, claim, claimed, settled

TURN = 3
NAMES = "abcd"
LONG = timedelta(minutes=14)  # leases that outlive the play
Move: TypeAlias = tuple[str, str, int]

_weights = st.sampled_from([0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0])
_comings_and_goings = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from(NAMES), st.integers(1, 12)),
        st.tuples(st.just("claim"), st.just(""), st.integers(1, 10)),
    ),
    min_size=10,
    max_size=40,
)


@dataclass
class Watch:
    """The served jobs in claim order, and the waiting jobs of each tenant."""

    strides: dict[str, int]
    waiting: Counter[str] = field(default_factory=Counter)
    since: dict[str, Counter[str]] = field(default_factory=dict)  # jobs of others since i's last
    newcomers: dict[str, Counter[str]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def came(self, tenant: str, number: int) -> None:
        """A tenant has work: one never seen before must be served soon."""
        self.waiting[tenant] += number
        if tenant not in self.known:
            self.known.add(tenant)
            self.newcomers[tenant] = Counter()

    def served(self, tenant: str) -> None:
        """Check the bound for every waiting tenant, at every single job."""
        self.waiting[tenant] -= 1
        for other, jobs in self.since.items():
            if other != tenant and self.waiting[other]:
                jobs[tenant] += 1
                most = TURN * self.strides[other] // self.strides[tenant] + TURN
                assert jobs[tenant] <= most, (other, tenant)
        self.newcomers.pop(tenant, None)
        for jobs in self.newcomers.values():
            jobs[tenant] += 1
            assert jobs[tenant] <= TURN
        if self.waiting[tenant]:
            self.since[tenant] = Counter()
        else:
            self.since.pop(tenant, None)  # it leaves: its next turn is a return


async def _play(
    backend: Backend, watch: Watch, moves: Sequence[Move], kinds: Mapping[str, KindName]
) -> None:
    """Tenants come, each with work of its kind; workers claim all kinds together."""
    for move, tenant, count in moves:
        if move == "come":
            new = a_task if kinds[tenant] == TASK else a_message
            await accepted(backend.store, *(new(tenant) for _ in range(count)))
            watch.came(tenant, count)
            continue
        for job in await claimed(backend.store, kinds=set(kinds.values()), limit=count, lease=LONG):
            watch.served(job.tenant)


def _tenants(weights: Sequence[float]) -> list[Tenant]:
    return [a_tenant(name, weight=weight) for name, weight in zip(NAMES, weights, strict=True)]


def _watch(weights: Sequence[float]) -> Watch:
    return Watch({name: stride(weight) for name, weight in zip(NAMES, weights, strict=True)})


@PROPERTY
@given(weights=st.tuples(*[_weights] * len(NAMES)), moves=_comings_and_goings)
async def test_bound_holds_in_claim_order(
    set_up: SetUp, weights: Sequence[float], moves: Sequence[Move]
) -> None:
    """Many workers with claims of any size, tenants of any weight that come and go."""
    async with set_up.opened(StoreClock()) as backend:
        await backend.tenants.define(_tenants(weights))
        await _play(backend, _watch(weights), moves, dict.fromkeys(NAMES, EMAIL))


@PROPERTY
@given(moves=_comings_and_goings)
async def test_bound_holds_for_kinds_claimed_together(set_up: SetUp, moves: Sequence[Move]) -> None:
    """Each tenant with one kind of work, two kinds claimed as one set."""
    weights = [1.0] * len(NAMES)
    kinds = dict(zip(NAMES, (EMAIL, TASK, EMAIL, TASK), strict=True))
    async with set_up.opened(StoreClock()) as backend:
        await backend.tenants.define(_tenants(weights))
        await _play(backend, _watch(weights), moves, kinds)


@PROPERTY
@given(
    weights=st.tuples(*[_weights] * len(NAMES)),
    limits=st.lists(st.integers(1, 10), min_size=10, max_size=30),
)
async def test_shares_of_standing_backlogs_follow_the_weights(
    set_up: SetUp, weights: Sequence[float], limits: Sequence[int]
) -> None:
    """While all have work, virtual times stay within one turn of the dearest of each other."""
    strides = _watch(weights).strides
    served: Counter[str] = Counter()
    async with set_up.opened(StoreClock()) as backend:
        await backend.tenants.define(_tenants(weights))
        backlog = [a_message(name) for name in NAMES for _ in range(sum(limits))]
        await accepted(backend.store, *backlog)
        for limit in limits:
            served.update(job.tenant for job in await claimed(backend.store, limit=limit))

    times = {name: served[name] * strides[name] for name in NAMES}
    for name in NAMES:
        assert times[name] - min(times.values()) <= TURN * strides[name]


# --- no tenant is skipped ---------------------------------------------------------------------


@dataclass
class Scene:
    """A store in use: its limits, its waiting jobs and its leased ones."""

    backend: Backend
    tenants: dict[str, Tenant]
    waiting: Counter[str] = field(default_factory=Counter)
    leased: list[LeasedJob] = field(default_factory=list)

    async def come(self, tenant: str, count: int) -> None:
        """A tenant adds work."""
        await accepted(self.backend.store, *(a_message(tenant) for _ in range(count)))
        self.waiting[tenant] += count

    async def claim(self, _tenant: str, count: int) -> None:
        """A worker takes some."""
        await self.take(count)

    async def end(self, _tenant: str, count: int) -> None:
        """The oldest leased jobs are sent."""
        for job in self.leased[:count]:
            await settled(self.backend.store, job, sent())
        del self.leased[:count]

    async def fail(self, _tenant: str, count: int) -> None:
        """The oldest leased jobs are ready again, after a failed attempt."""
        for job in self.leased[:count]:
            await settled(self.backend.store, job, retry())
            self.waiting[job.tenant] += 1
        del self.leased[:count]

    async def release(self, _tenant: str, count: int) -> None:
        """The oldest leased jobs are released."""
        leases: list[Lease] = [job.lease for job in self.leased[:count]]
        await self.backend.store.release(leases)
        self.waiting.update(job.tenant for job in self.leased[:count])
        del self.leased[:count]

    async def cap(self, tenant: str, count: int) -> None:
        """A tenant is capped, or its cap is lifted."""
        await self._define(a_tenant(tenant, cap=count if count > 1 else None))

    async def pause(self, tenant: str, count: int) -> None:
        """A tenant is paused or resumed, and its cap is lifted."""
        await self._define(a_tenant(tenant, paused=count % 2 == 1))

    async def weigh(self, tenant: str, count: int) -> None:
        """A tenant has another weight, and no other limit."""
        await self._define(a_tenant(tenant, weight=float(count)))

    async def _define(self, tenant: Tenant) -> None:
        self.tenants[tenant.id] = tenant
        await self.backend.tenants.define([tenant])

    async def take(self, limit: int) -> set[str]:
        """Claim, and return the served tenants."""
        jobs = await claimed(self.backend.store, limit=limit, lease=LONG)
        self.leased += jobs
        self.waiting.subtract(job.tenant for job in jobs)
        return {job.tenant for job in jobs}

    def entitled(self) -> set[str]:
        """Tenants with ready work and free capacity now."""
        in_flight: Counter[str] = Counter(job.tenant for job in self.leased)
        return {
            name
            for name, tenant in self.tenants.items()
            if self.waiting[name]
            and not tenant.paused
            and (tenant.cap is None or in_flight[name] < tenant.cap)
        }


_uses = st.lists(
    st.tuples(
        st.sampled_from(["come", "claim", "end", "fail", "release", "cap", "pause", "weigh"]),
        st.sampled_from(NAMES),
        st.integers(1, 6),
    ),
    min_size=5,
    max_size=40,
)


@PROPERTY
@given(moves=_uses)
async def test_tenant_with_ready_work_and_free_capacity_is_never_skipped(
    set_up: SetUp, moves: Sequence[Move]
) -> None:
    """After any use of the store, a claim that is large enough serves every entitled tenant."""
    async with set_up.opened(StoreClock()) as backend:
        scene = Scene(backend, {name: a_tenant(name) for name in NAMES})
        await backend.tenants.define(list(scene.tenants.values()))
        for move, tenant, count in moves:
            await getattr(scene, move)(tenant, count)

        expected = scene.entitled()

        assert await scene.take(1000) == expected


@PROPERTY
@given(
    caps=st.tuples(*[st.one_of(st.none(), st.integers(1, 3))] * len(NAMES)),
    rates=st.tuples(*[st.one_of(st.none(), st.sampled_from([0.5, 2.0, 7.0]))] * len(NAMES)),
    counts=st.tuples(*[st.integers(0, 6)] * len(NAMES)),
    delays=st.lists(st.integers(0, 5), min_size=24, max_size=24),
)
async def test_sleeping_as_long_as_the_claim_says_gets_everything_done(
    set_up: SetUp,
    caps: Sequence[int | None],
    rates: Sequence[float | None],
    counts: Sequence[int],
    delays: Sequence[int],
) -> None:
    """`idle_for` leads from job to job until all is done; no alarm is missing, none rings for ever."""
    clock = StoreClock()
    limits = zip(NAMES, caps, rates, strict=True)
    async with set_up.opened(clock) as backend:
        await backend.tenants.define(
            [a_tenant(name, cap=cap, rate_per_second=rate) for name, cap, rate in limits]
        )
        names = [name for name, count in zip(NAMES, counts, strict=True) for _ in range(count)]
        await accepted(
            backend.store,
            *(
                a_message(name, due=clock.at(timedelta(seconds=delay)))
                for name, delay in zip(names, delays, strict=False)
            ),
        )

        done = await _work_until_idle(backend, clock)

    assert done == len(names)


async def _work_until_idle(backend: Backend, clock: StoreClock) -> int:
    done = 0
    for _ in range(200):
        answer = await claim(backend.store, limit=5)
        for job in answer.jobs:
            await settled(backend.store, job, sent())
        done += len(answer.jobs)
        if answer.jobs:
            continue
        if answer.idle_for is None:
            return done
        assert answer.idle_for > timedelta(0)
        clock.advance(answer.idle_for)
    raise AssertionError("there was always something to wait for")
