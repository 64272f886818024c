"""Any function as a kind of job: the same retries, fairness and dead letters as e-mail."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

import orjson
from uuid_utils import uuid7

from carteiro import model
from carteiro.email.submission import Commit, accept_each
from carteiro.errors import FieldError, InvalidMessage, NotAccepted
from carteiro.jobs.kind import Deliver, Kind
from carteiro.observability.tracing import Tracing
from carteiro.policy.lifecycle import LONGEST_HOLD
from carteiro.policy.names import NAME_RULE, is_name
from carteiro.policy.retry import RetryPolicy
from carteiro.policy.trace_context import TRACE, TraceContext, read_trace, trace_in, with_trace
from carteiro.ports.provider import Handover, Parcel

Function: TypeAlias = Callable[..., Any]
Made = TypeVar("Made", model.NewMessage, model.NewMessage | NotAccepted)

MAX_CONTENT_BYTES = 1024 * 1024
_MOST_URGENT, _LEAST_URGENT = 1, 10
_DONE = model.Taken("")
PROVIDER = "task"  # the provider of a task's attempts in the ledger


@model.value
class TaskOptions:
    """Options of a task; ``timeout`` is required with at-most-once, whose attempts are declared."""

    policy: Callable[[model.LeasedJob], RetryPolicy]
    ttl: timedelta
    timeout: timedelta | None = None
    delivery: model.Delivery = model.Delivery.AT_LEAST_ONCE
    priority: int = 5

    @property
    def declares(self) -> bool:
        """At most once means: declared before it runs, so that a crash leaves it in doubt and it is not run again."""
        return self.delivery is model.Delivery.AT_MOST_ONCE

    def check(self, name: str) -> None:
        """Raise ValueError on invalid options."""
        if self.declares and self.timeout is None:
            raise ValueError(f"task {name!r} runs at most once and needs a timeout: set timeout")
        if self.timeout is not None and self.timeout <= model.ZERO:
            raise ValueError(f"the timeout of task {name!r} must be above 0")
        if self.declares and self.timeout is not None and self.timeout > LONGEST_HOLD / 2:
            raise ValueError(
                f"the timeout of task {name!r}, at most once, is {LONGEST_HOLD / 2} at most"
            )
        if self.ttl <= model.ZERO:
            raise ValueError(f"the ttl of task {name!r} must be above 0")
        if not _MOST_URGENT <= self.priority <= _LEAST_URGENT:
            raise ValueError(f"the priority of task {name!r} must be 1 (most urgent) to 10")


class Task:
    """A function that can be sent: ``await task.send(tenant="acme", n=1)``; a direct call runs it at once."""

    def __init__(
        self,
        name: str,
        function: Function,
        options: TaskOptions,
        accept: Commit,
        *,
        tracing: Tracing | None = None,
    ) -> None:
        if not is_name(name):
            raise ValueError(f"the name of a task {NAME_RULE}")
        options.check(name)
        self.kind_name = model.KindName(name)
        self.function = function
        self.options = options
        self._declares = options.declares
        self.is_async = inspect.iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        self._fitting: tuple[str, ...] | None = None  # names of arguments that are known to fit
        self._accept = accept
        self._tracing = tracing

    def __call__(self, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the function's own types
        """Call the function directly."""
        return self.function(*arguments, **named)

    async def send(
        self,
        *,
        tenant: str,
        due: datetime | None = None,
        **arguments: Any,  # noqa: ANN401 - the function's own arguments
    ) -> model.StoreAnswer:
        """Commit a call for a worker to run; raises `InvalidMessage` on arguments that do not fit.

        ``traceparent`` and ``tracestate`` are not arguments of the function: they name the span that its attempts
        belong to.
        """
        made = partial(self._message, str(uuid7()), tenant=tenant, due=due, **arguments)
        if self._tracing is None or arguments.get("traceparent") is not None:
            [answer] = await self._accept([made()])
        else:
            with self._tracing.sending(self.kind_name, 1) as trace:
                [answer] = await self._accept([_traced(made(), trace)])
        if isinstance(answer, NotAccepted):
            raise InvalidMessage(answer.fields)
        return answer

    async def send_many(
        self, calls: Sequence[Mapping[str, Any]]
    ) -> list[model.StoreAnswer | NotAccepted]:
        """Commit many calls, each with its ``tenant`` and optional ``due``; return an answer for each, in order."""
        request_id = str(uuid7())  # a list is one request
        made = [self._made(call, request_id) for call in calls]
        if self._tracing is None:
            return await accept_each(made, self._accept)
        with self._tracing.sending(self.kind_name, len(calls)) as trace:
            return await accept_each([_traced(each, trace) for each in made], self._accept)

    def _made(self, call: Mapping[str, Any], request_id: str) -> model.NewMessage | NotAccepted:
        try:
            return self._message(request_id, **call)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))

    def _message(
        self,
        request_id: str,
        /,
        *,
        tenant: object = None,
        due: object = None,
        traceparent: object = None,
        tracestate: object = None,
        **arguments: Any,  # noqa: ANN401 - the function's own arguments
    ) -> model.NewMessage:
        if not is_name(tenant):
            raise InvalidMessage([FieldError("tenant", NAME_RULE, missing=tenant is None)])
        options = self.options
        content = self._content(arguments)
        if traceparent is not None:
            trace = read_trace(traceparent, tracestate)
            content = content if trace is None else with_trace(content, trace)
        return model.NewMessage(  # by position: names take three times as long
            model.MessageId(str(uuid7())),
            model.TenantId(tenant),
            self.kind_name,
            content,
            request_id,
            options.ttl,
            options.priority,
            None if due is None else _moment(due),
            self._declares,
            options.delivery,
        )

    def _content(self, arguments: dict[str, Any]) -> str:
        names = tuple(arguments)
        if names != self._fitting:  # the check is slow, so it is skipped for the same names
            try:
                self._signature.bind(**arguments)
            except TypeError as error:
                raise InvalidMessage([FieldError("arguments", str(error))]) from None
            self._fitting = names
        try:
            content = orjson.dumps(arguments)
        except TypeError as error:
            raise InvalidMessage([FieldError("arguments", f"must be JSON: {error}")]) from None
        if len(content) > MAX_CONTENT_BYTES:
            raise InvalidMessage([FieldError("arguments", "must not be larger than 1 MiB")])
        return content.decode()

    def kind(self, threads: Executor) -> Kind:
        """The kind of job that runs this task."""
        deliver: Deliver = partial(self._deliver, threads)
        return Kind(
            name=self.kind_name,
            provider=PROVIDER,
            confirm=None,
            deliver=deliver if self._tracing is None else self._tracing.around(deliver),
            policy=self.options.policy,
            declares=self.options.declares,
            call_limit=self.options.timeout,
            function=self._call if self._is_plain else None,
        )

    @property
    def _is_plain(self) -> bool:
        """True if nothing is to be done but to call the function."""
        is_bound = self._declares or self.options.timeout is not None
        return self.is_async and not is_bound and self._tracing is None

    def _call(self, content: str) -> Awaitable[object]:
        arguments = orjson.loads(content)
        if TRACE in arguments:
            del arguments[TRACE]
        called: Awaitable[object] = self.function(**arguments)
        return called

    async def _deliver(
        self, threads: Executor, parcel: Parcel, handover: Handover
    ) -> model.Outcome:
        """Run the task. An exception is a failure; with at-most-once the result is unknown."""
        arguments = orjson.loads(parcel.content)
        if TRACE in arguments:
            del arguments[TRACE]
        if self.is_async:
            if self._declares:
                handover.begin()
            await self.function(**arguments)
        else:  # the thread begins it, as a free thread may come late
            handover.is_queued = True
            call = partial(self._run_in_thread, handover, arguments)
            if self._tracing is not None:  # the current span goes along
                call = partial(copy_context().run, call)
            await asyncio.get_running_loop().run_in_executor(threads, call)
        return _DONE

    def _run_in_thread(self, handover: Handover, arguments: Mapping[str, Any]) -> None:
        handover.is_queued = False
        if self._declares:
            handover.begin()
        try:
            self.function(**arguments)
        except StopIteration as error:  # a future cannot carry it: its waiter would never end
            raise RuntimeError("StopIteration") from error


def _traced(made: Made, trace: TraceContext | None) -> Made:
    """The same call in this trace, unless it has one of its own."""
    if trace is None or not isinstance(made, model.NewMessage) or trace_in(made.content):
        return made
    return replace(made, content=with_trace(made.content, trace))


def _moment(due: object) -> datetime:
    if not isinstance(due, datetime) or due.tzinfo is None:
        raise InvalidMessage([FieldError("due", "must be a time with a time zone")])
    if due > model.LATEST:
        raise InvalidMessage([FieldError("due", f"must not be after {model.LATEST:%Y-%m-%d}")])
    return due
