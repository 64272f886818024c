"""Any function as a kind of job: the same retries, fairness and dead letters as e-mail."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

import orjson
from uuid_utils import uuid7

from carteiro.errors import FieldError, InvalidMessage
from carteiro.kinds import Kind
from carteiro.model import (
    Delivery,
    KindName,
    LeasedJob,
    MessageId,
    NewMessage,
    Outcome,
    StoreAnswer,
    Taken,
    TenantId,
    value,
)
from carteiro.policy.retry import RetryPolicy
from carteiro.ports.provider import Handover, Parcel

Function: TypeAlias = Callable[..., Any]
Accept: TypeAlias = Callable[[Sequence[NewMessage]], Awaitable[list[StoreAnswer]]]

MAX_CONTENT_BYTES = 1024 * 1024
PROVIDER = "task"  # what the ledger names as the provider of a task's attempts


@value
class TaskOptions:
    """How a task is run; ``timeout`` is required with at-most-once, whose attempts are declared."""

    policy: Callable[[LeasedJob], RetryPolicy]
    ttl: timedelta
    timeout: timedelta | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    priority: int = 5

    @property
    def declares(self) -> bool:
        """At most once means: declared before it runs, so that a crash leaves it in doubt, not run again."""
        return self.delivery is Delivery.AT_MOST_ONCE


class Task:
    """A function that can be sent: ``await task.send(tenant="acme", n=1)``; calling it runs it here and now."""

    def __init__(self, name: str, function: Function, options: TaskOptions, accept: Accept) -> None:
        if options.declares and options.timeout is None:
            text = f"task {name!r} is to run at most once: give it a timeout"
            raise ValueError(text)
        self.kind_name = KindName(name)
        self.function = function
        self.options = options
        self.is_async = inspect.iscoroutinefunction(function)
        self._accept = accept

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
        """Run the function itself."""
        return self.function(*arguments, **named)

    async def send(
        self,
        *,
        tenant: str,
        due: datetime | None = None,
        **arguments: Any,  # noqa: ANN401 - whatever the function takes
    ) -> StoreAnswer:
        """Have it run by a worker, once committed; arguments must be JSON."""
        [answer] = await self._accept([self._message(due, tenant=tenant, **arguments)])
        return answer

    async def send_many(self, calls: Sequence[Mapping[str, Any]]) -> list[StoreAnswer]:
        """Many calls in one commit, each with its ``tenant``; an answer for each, in order."""
        return await self._accept([self._message(None, **call) for call in calls])

    def _message(self, due: datetime | None, *, tenant: str, **arguments: Any) -> NewMessage:  # noqa: ANN401 - whatever the function takes
        return NewMessage(
            id=MessageId(str(uuid7())),
            tenant=TenantId(tenant),
            kind=self.kind_name,
            content=_content(arguments),
            request_id=str(uuid7()),
            ttl=self.options.ttl,
            priority=self.options.priority,
            due=due,
            declares=self.options.declares,
            delivery=self.options.delivery,
        )

    def kind(self, threads: Executor) -> Kind:
        """The kind of job that runs this task."""
        return Kind(
            name=self.kind_name,
            provider=PROVIDER,
            confirm=None,
            deliver=partial(self._deliver, threads),
            policy=self.options.policy,
            declares=self.options.declares,
            call_limit=self.options.timeout,
        )

    async def _deliver(self, threads: Executor, parcel: Parcel, handover: Handover) -> Outcome:
        """Run it. An exception is a failure; at most once, nobody knows what it did before."""
        arguments = orjson.loads(parcel.content)
        if self.options.declares:
            handover.begin()
        if self.is_async:
            await self.function(**arguments)
        else:
            call = partial(_run_in_thread, self.function, arguments)
            await asyncio.get_running_loop().run_in_executor(threads, call)
        return Taken("")


def _run_in_thread(function: Function, arguments: Mapping[str, Any]) -> None:
    try:
        function(**arguments)
    except StopIteration as error:  # no future can carry it: whoever waits would wait for ever
        raise RuntimeError("StopIteration") from error


def _content(arguments: Mapping[str, Any]) -> str:
    try:
        content = orjson.dumps(dict(arguments))
    except TypeError as error:
        raise InvalidMessage([FieldError("arguments", f"must be JSON: {error}")]) from None
    if len(content) > MAX_CONTENT_BYTES:
        raise InvalidMessage([FieldError("arguments", "must not be larger than 1 MiB")])
    return content.decode()
