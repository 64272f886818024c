"""Any function as a kind of job: sent, run, retried and given up."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import pytest

from carteiro.app import Carteiro
from carteiro.engine.tasks import MAX_CONTENT_BYTES, Task
from carteiro.errors import DeliveryFailed, InvalidMessage, NotAccepted
from carteiro.model import (
    Accepted,
    DeadLetter,
    DeadReason,
    Delivery,
    MessageFilter,
    MessageId,
    NotMade,
    State,
)
from carteiro.path.deliver import TimeLimits, deliver
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.ports.provider import Handover
from support.builders import a_failure
from support.hostile_errors import HOSTILE
from support.library import row_of, work
from support.working import TOO_LONG, a_parcel, logged

AT_ONCE = RetryPolicy(max_attempts=3, jitter=0)  # no wait between attempts
ONCE = RetryPolicy(max_attempts=1)
A_MOMENT = timedelta(milliseconds=5)
A_WHILE = timedelta(seconds=30)


@asynccontextmanager
async def a_post() -> AsyncIterator[Carteiro]:
    """An app in memory."""
    async with Carteiro.open("memory://", provider="noop") as post:
        yield post


async def _takes_a(a: int) -> None:
    """The function as it is after a change."""


async def sent(task: Task, **arguments: Any) -> MessageId:
    """Send one call as ACME."""
    answer = await task.send(tenant="acme", **arguments)
    assert isinstance(answer, Accepted)
    return answer.id


async def letter_of(post: Carteiro, message: MessageId) -> DeadLetter:
    """The dead letter of a message."""
    letter = await post.backend.dead_letters.show(message)
    assert letter is not None
    return letter


async def story_of(post: Carteiro, message: MessageId) -> list[str]:
    """The timeline of a message, types only."""
    return [event.type for event in await post.backend.reading.events(message)]


# --- running ----------------------------------------------------------------------------------


async def test_async_function_runs_with_its_arguments() -> None:
    """The JSON arrives as keywords; the result is discarded."""
    ran: list[object] = []
    async with a_post() as post:

        @post.task("add")
        async def add(a: int, *, more: list[str]) -> str:
            ran.append((a, more, threading.current_thread() is threading.main_thread()))
            return "discarded"

        message = await sent(add, a=1, more=["x", "ü"])
        await work(post)

        assert ran == [(1, ["x", "ü"], True)]
        assert (await row_of(post, message)).state is State.SENT


async def test_plain_function_runs_in_a_thread() -> None:
    """It may block: the worker goes on."""
    ran: list[bool] = []
    async with a_post() as post:

        @post.task("tidy")
        def tidy() -> None:
            ran.append(threading.current_thread() is threading.main_thread())

        message = await sent(tidy)
        await work(post)

        assert ran == [False]
        assert (await row_of(post, message)).state is State.SENT


async def test_finished_task_has_one_event() -> None:
    """It passes RECEIVED and SENT_ATTEMPT inside settle; one attempt is counted."""
    async with a_post() as post:

        @post.task("tidy")
        async def tidy() -> None:
            pass

        message = await sent(tidy)
        await work(post)

        assert await story_of(post, message) == ["SENT"]
        row = await row_of(post, message)
        assert (row.attempts, row.provider, row.kind) == (1, "task", "tidy")


async def test_calling_a_task_runs_it_here_and_now() -> None:
    """The function is still a function."""
    async with a_post() as post:

        @post.task("double")
        def double(number: int) -> int:
            return 2 * number

        assert double(4) == 8
        assert await post.backend.reading.states() == {}


async def test_many_calls_are_accepted_together() -> None:
    """One answer each, in order; each runs."""
    ran: list[int] = []
    async with a_post() as post:

        @post.task("count")
        async def count(n: int) -> None:
            ran.append(n)

        answers = await count.send_many([{"tenant": "acme", "n": n} for n in range(7)])
        await work(post)

        assert all(isinstance(answer, Accepted) for answer in answers)
        assert len(answers) == 7
        assert sorted(ran) == list(range(7))


async def test_list_of_calls_is_one_request() -> None:
    """Whatever the arguments of the task are called; the next list is another one."""
    async with a_post() as post:

        @post.task("any")
        async def anything(request_id: int) -> None:
            pass

        calls = [{"tenant": "acme", "request_id": n} for n in range(2)]
        lists = [await anything.send_many(calls) for _ in range(2)]
        page = await post.backend.reading.messages(MessageFilter(), limit=9)

        assert all(isinstance(answer, Accepted) for answers in lists for answer in answers)
        requests = [each.request_id for each in page.rows]
        assert requests[0] == requests[1] != requests[2] == requests[3]


async def test_task_may_be_scheduled() -> None:
    """The queue keeps its time."""
    async with a_post() as post:

        @post.task("later", ttl=timedelta(hours=2), priority=2)
        async def later() -> None:
            pass

        accepted = await row_of(post, await sent(later))
        due = accepted.created_at + timedelta(hours=1)
        row = await row_of(post, await sent(later, due=due))

        assert abs(row.due_at - due) < timedelta(milliseconds=1)
        assert row.expires_at - row.due_at == timedelta(hours=2)
        assert row.priority == 2


# --- failing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [True, False])
async def test_task_that_raises_is_retried(is_async: bool) -> None:
    """Up to the limit of its policy; each failure is charged."""
    runs: list[int] = []

    def fails_twice() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("not yet")

    async def fails_twice_async() -> None:
        fails_twice()

    async with a_post() as post:
        define = post.task("moody", retry=AT_ONCE)
        task = define(fails_twice_async if is_async else fails_twice)
        message = await sent(task)
        await work(post)

        assert await story_of(post, message) == ["RETRY_SCHEDULED", "RETRY_SCHEDULED", "SENT"]
        row = await row_of(post, message)
        assert (row.attempts, row.charged) == (3, 2)


@pytest.mark.parametrize(
    "error", [ValueError("no"), StopIteration(), asyncio.CancelledError(), TimeoutError()]
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_task_that_always_raises_is_a_dead_letter(
    error: BaseException, is_async: bool
) -> None:
    """For any exception: also one that would confuse a future or a worker."""

    def plain() -> NoReturn:
        raise error

    async def coroutine() -> NoReturn:
        raise error

    async with a_post() as post:
        task = post.task("bad", retry=AT_ONCE)(coroutine if is_async else plain)
        message = await sent(task)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failed_attempts) == (DeadReason.MAX_ATTEMPTS_EXCEEDED, 3)
        assert letter.failure.code in {"TASK_ERROR", "TASK_TIMEOUT"}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("is_async", [True, False])
async def test_task_with_a_hostile_error_is_a_dead_letter(name: str, is_async: bool) -> None:
    """Whatever the error's own code does when it is read; its slot is free again."""

    def plain() -> NoReturn:
        error = HOSTILE[name]()
        raise error

    async def coroutine() -> NoReturn:
        error = HOSTILE[name]()
        raise error

    async with a_post() as post:
        task = post.task("bad", retry=AT_ONCE)(coroutine if is_async else plain)
        message = await sent(task)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failed_attempts) == (DeadReason.MAX_ATTEMPTS_EXCEEDED, 3)


async def test_task_may_declare_a_failure_permanent() -> None:
    """DeliveryFailed with a permanent failure is dead at once, as it was classified."""
    for_good = a_failure("NO_SUCH_FILE", retryable=False)
    async with a_post() as post:

        @post.task("strict", retry=AT_ONCE)
        async def strict() -> NoReturn:
            raise DeliveryFailed(for_good)

        message = await sent(strict)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failure) == (DeadReason.PERMANENT_ERROR, for_good)
        assert letter.failed_attempts == 1


async def test_task_may_declare_a_failure_retryable() -> None:
    """DeliveryFailed with a retryable failure follows the policy, with its own code."""
    async with a_post() as post:

        @post.task("moody", retry=AT_ONCE)
        async def moody() -> NoReturn:
            raise DeliveryFailed(a_failure("BUSY"))

        message = await sent(moody)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failure.code) == (DeadReason.MAX_ATTEMPTS_EXCEEDED, "BUSY")


async def test_task_that_times_out_is_retried() -> None:
    """Its timeout is a failure like any other: it runs at least once."""
    async with a_post() as post:

        @post.task("slow", timeout=A_MOMENT, retry=AT_ONCE)
        async def slow() -> None:
            await asyncio.Event().wait()

        message = await sent(slow)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failed_attempts) == (DeadReason.MAX_ATTEMPTS_EXCEEDED, 3)
        assert letter.failure.code == "TASK_TIMEOUT"


async def test_arguments_that_the_function_does_not_take_are_a_failure() -> None:
    """The function may have changed since it was sent: reported, retried, kept."""
    async with a_post() as post:

        @post.task("picky", retry=ONCE)
        async def picky(**_: int) -> None:
            pass

        message = await sent(picky, b=1)
        picky.function = _takes_a
        await work(post)

        assert (await letter_of(post, message)).failure.original_code == "TypeError"


# --- at most once -----------------------------------------------------------------------------


async def test_at_most_once_is_declared_and_sent() -> None:
    """The attempt is in the ledger before it is made."""
    async with a_post() as post:

        @post.task("pay", delivery="at_most_once", timeout=A_WHILE)
        async def pay() -> None:
            pass

        message = await sent(pay)
        await work(post)

        assert await story_of(post, message) == ["RECEIVED", "SENT_ATTEMPT", "SENT"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_at_most_once_that_raises_is_in_doubt(is_async: bool) -> None:
    """It may have had effects: not run again, kept for people."""
    runs: list[int] = []

    def plain() -> NoReturn:
        runs.append(1)
        raise RuntimeError("half way")

    async def coroutine() -> NoReturn:
        plain()

    async with a_post() as post:
        define = post.task("pay", delivery=Delivery.AT_MOST_ONCE, timeout=A_WHILE)
        message = await sent(define(coroutine if is_async else plain))
        await work(post)

        assert await story_of(post, message) == ["RECEIVED", "SENT_ATTEMPT", "IN_DOUBT", "FAILED"]
        assert (await letter_of(post, message)).reason is DeadReason.IN_DOUBT
        assert len(runs) == 1


async def test_at_most_once_that_times_out_is_in_doubt() -> None:
    """It was begun, and its end is unknown."""
    async with a_post() as post:

        @post.task("pay", delivery="at_most_once", timeout=timedelta(milliseconds=30))
        async def pay() -> None:
            await asyncio.Event().wait()

        message = await sent(pay)
        await work(post)

        letter = await letter_of(post, message)
        assert (letter.reason, letter.failure.code) == (DeadReason.IN_DOUBT, "TASK_TIMEOUT")


async def test_at_most_once_is_retried_on_a_declared_failure() -> None:
    """A task that classifies its failure knows that nothing happened."""
    runs: list[int] = []
    async with a_post() as post:

        @post.task("pay", delivery="at_most_once", timeout=A_WHILE, retry=AT_ONCE)
        async def pay() -> None:
            runs.append(1)
            if len(runs) < 2:
                raise DeliveryFailed(a_failure("BANK_CLOSED"))

        message = await sent(pay)
        await work(post)

        assert (await row_of(post, message)).state is State.SENT
        assert len(runs) == 2


async def test_at_most_once_needs_a_timeout() -> None:
    """Its hold must have an end."""
    async with a_post() as post:
        define = post.task("pay", delivery="at_most_once")

        with pytest.raises(
            ValueError, match="'pay' runs at most once and needs a timeout: set timeout"
        ):
            define(lambda: None)


# --- refusals ---------------------------------------------------------------------------------


async def test_arguments_must_be_json() -> None:
    """Nothing is stored otherwise; the error names the field without its value."""
    async with a_post() as post:

        @post.task("any")
        async def anything(**_: Any) -> None:
            pass

        with pytest.raises(InvalidMessage, match="arguments: must be JSON") as refused:
            await anything.send(tenant="acme", secret=object())

        assert [each.field for each in refused.value.fields] == ["arguments"]
        assert await post.backend.reading.states() == {}


async def test_arguments_have_a_size_limit() -> None:
    """The limit itself is accepted, one byte more is not; one oversized call refuses its list."""
    around = len('{"text":""}')
    largest = "x" * (MAX_CONTENT_BYTES - around)
    async with a_post() as post:

        @post.task("any")
        async def anything(text: str) -> None:
            pass

        await sent(anything, text=largest)
        answers = await anything.send_many(
            [{"tenant": "acme", "text": "small"}, {"tenant": "acme", "text": largest + "x"}]
        )

        assert [type(answer) for answer in answers] == [Accepted, NotAccepted]
        assert await post.backend.reading.states() == {State.ENQUEUED: 2}


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({"text": "x"}, "tenant"),
        ({"tenant": "", "text": "x"}, "tenant"),
        ({"tenant": 7, "text": "x"}, "tenant"),
        ({"tenant": "a\nb", "text": "x"}, "tenant"),
        ({"tenant": "acme"}, "arguments"),
        ({"tenant": "acme", "text": "x", "more": 1}, "arguments"),
        ({"tenant": "acme", "text": object()}, "arguments"),
        ({"tenant": "acme", "text": "x", "due": "tomorrow"}, "due"),
        ({"tenant": "acme", "text": "x", "due": datetime(2030, 1, 1)}, "due"),  # noqa: DTZ001 - that is it
        ({"tenant": "acme", "text": "x", "due": datetime(9999, 1, 1, tzinfo=UTC)}, "due"),
    ],
)
async def test_call_that_cannot_be_run_is_refused(call: dict[str, Any], field: str) -> None:
    """It fails at once instead of in a worker, and stores nothing."""
    async with a_post() as post:

        @post.task("any")
        async def anything(text: str) -> None:
            pass

        [answer] = await anything.send_many([call])

        assert isinstance(answer, NotAccepted)
        assert [fault.field for fault in answer.fields] == [field]
        assert await post.backend.reading.states() == {}


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "x" * 256},
        {"priority": 0},
        {"priority": 11},
        {"ttl": timedelta(0) - A_MOMENT},
        {"timeout": timedelta(0)},
        {"retry": "pipelines"},
        {"delivery": "at_most_once", "timeout": timedelta(hours=1)},
    ],
)
async def test_invalid_options_are_refused(options: dict[str, Any]) -> None:
    """The error is raised at the definition, not by a worker later."""
    async with a_post() as post:
        with pytest.raises(ValueError):
            post.task(**{"name": "any", **options})(print)


async def test_preset_can_be_named() -> None:
    """Its name stands for its policy."""
    async with a_post() as post:

        @post.task("any", retry="pipeline")
        async def anything() -> None:
            pass

        assert anything.options.policy(None) is PRESETS["pipeline"]  # type: ignore[arg-type]


class Panic(BaseException):
    """As extensions raise it."""


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), Panic()], ids=type)
@pytest.mark.parametrize("where", ["loop", "thread", "awaited thread"])
async def test_task_that_exits_fails_like_any_other(error: BaseException, where: str) -> None:
    """It ends neither its process nor the other jobs, and its slot is free again."""

    def plain() -> NoReturn:
        raise error

    async def coroutine() -> None:
        await asyncio.to_thread(plain) if where == "awaited thread" else plain()

    async with a_post() as post:
        task = post.task("quits", retry=ONCE)(plain if where == "thread" else coroutine)
        message = await sent(task)
        await work(post)

        assert (await letter_of(post, message)).failure.original_code == type(error).__name__


async def test_task_that_no_thread_was_free_for_has_not_failed() -> None:
    """Others may use all threads for longer than its time limit: it is not charged for that."""
    ran, gate = [], threading.Event()
    async with a_post() as post:

        @post.task("waits", timeout=timedelta(milliseconds=5))
        def waits() -> None:
            ran.append(1)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(gate.wait)
            kind = waits.kind(threads)
            outcome = await deliver(kind, a_parcel(), Handover(kind.call_limit), TimeLimits())
            gate.set()

    assert isinstance(outcome, NotMade)
    assert not ran


@pytest.mark.parametrize("name", ["twice", "email:send"])
async def test_task_name_is_unique(name: str) -> None:
    """A second function under it, or one named like e-mail, is an error."""
    async with a_post() as post:
        post.task("twice")(lambda: None)

        with pytest.raises(ValueError, match=f"a task named '{name}' is defined already"):
            post.task(name)(lambda: None)


async def test_unknown_kind_stays_for_another_worker() -> None:
    """It is not claimed, not failed, not changed."""
    ran: list[int] = []
    async with a_post() as post:

        @post.task("known")
        async def known() -> None:
            ran.append(1)

        other = Carteiro(post.backend, post.settings, threads=post._threads)
        stranger = other.task("stranger")(lambda: None)
        message = await sent(stranger)
        await sent(known)
        working = asyncio.create_task(post.run_worker())
        async with asyncio.timeout(TOO_LONG):
            while not ran:
                await asyncio.sleep(0.001)
        post.stop()
        await working

        assert (await row_of(post, message)).state is State.ENQUEUED
        await work(other)
        assert (await row_of(post, message)).state is State.SENT


async def test_log_of_a_task_shows_no_arguments() -> None:
    """Lines have its result, not its content."""
    with logged() as lines:
        async with a_post() as post:

            @post.task("quiet", retry=AT_ONCE)
            async def quiet(secret: str) -> None:
                raise RuntimeError("it broke")

            await sent(quiet, secret="tango-17")
            await work(post)

    assert "tango-17" not in str(lines)
    finished = [line for line in lines if line["event"] == "attempt.finished"]
    assert [line["attempt"] for line in finished] == [1, 2, 3]
