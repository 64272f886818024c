"""Dead letters as JSON: shown, exported to files and imported.

A file has one entry a line (JSON lines, UTF-8). A message may occur several times, in one or more
files: an import restores its entry once.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Annotated, Any

import orjson
import pydantic
from pydantic import Field
from pydantic.alias_generators import to_camel

from carteiro import model
from carteiro.email.message import only_time_as_text, plainly
from carteiro.errors import FieldError, InvalidMessage
from carteiro.policy.grouping import GROUP, group_of
from carteiro.ports import DeadLetters, Reading
from carteiro.views.moments import in_iso

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_TTL = timedelta(days=36_500)
_PAGE = 100
_MOST_FAULTS = 20  # reported at once: a file of another kind has one on each line


# --- writing ----------------------------------------------------------------------------------


def to_json(
    letter: model.DeadLetter, events: Sequence[model.TimelineEvent] | None = None
) -> dict[str, Any]:
    """The entry as JSON; with ``events`` also the history of its attempts."""
    failure = letter.failure
    entry: dict[str, Any] = {
        "jobId": letter.id,
        "outboxId": letter.id,
        "companyId": letter.tenant,
        "kind": letter.kind,
        "originalData": _original_data(letter.content),
        "failedAttempts": letter.failed_attempts,
        "lastFailureReason": failure.reason,
        "lastFailureCode": failure.code,
        "lastFailureTimestamp": in_iso(letter.failed_at),
        "enqueuedAt": in_iso(letter.enqueued_at),
        "movedToDLQAt": in_iso(letter.moved_at),
        "ttl": letter.ttl // model.MILLISECOND,
        "reason": letter.reason.value,
        "category": failure.category.value,
        "originalCode": failure.original_code,
        "retryable": failure.retryable,
        "scope": failure.scope.value,
        "rule": failure.rule,
        "failureGroup": letter.group,
        "redrivenAt": None if letter.redriven_at is None else in_iso(letter.redriven_at),
    }
    if events is not None:
        entry["events"] = [_event(each) for each in events]
    return entry


def export(
    letters: Iterable[tuple[model.DeadLetter, Sequence[model.TimelineEvent] | None]],
    file: IO[bytes],
) -> int:
    """Write entries, one a line, each with its history if there is one; return how many."""
    count = 0
    for letter, events in letters:
        file.write(orjson.dumps(to_json(letter, events), option=orjson.OPT_APPEND_NEWLINE))
        count += 1
    return count


async def exported(
    letters: DeadLetters, reading: Reading, wanted: model.DeadFilter
) -> AsyncIterator[bytes]:
    """Matching dead letters with their history, as lines of a file, newest first.

    Await it: its first page is read before an answer begins, so that an error can still be reported.
    """
    first = await letters.find(wanted, limit=_PAGE, is_whole=False)
    return _lines(letters, reading, wanted, first)


async def _lines(
    letters: DeadLetters,
    reading: Reading,
    wanted: model.DeadFilter,
    page: model.Page[model.DeadLetter],
) -> AsyncIterator[bytes]:
    while True:
        for each in page.rows:  # one at a time: a content may be a megabyte
            letter = await letters.show(each.id)
            if letter is not None:
                entry = to_json(letter, await reading.events(letter.id))
                yield orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
        if page.next is None:
            return
        page = await letters.find(wanted, cursor=page.next, limit=_PAGE, is_whole=False)


def _event(event: model.TimelineEvent) -> dict[str, Any]:
    return {"type": event.type.value, "metadata": event.metadata, "createdAt": in_iso(event.at)}


def _original_data(content: str) -> Any:  # noqa: ANN401 - whatever the message was made of
    """The content as data; None once it was pruned."""
    if not content:
        return None
    try:
        data = orjson.loads(content)
        _json([[[[data]]]])  # deeper nesting could not be written inside an entry
    except (ValueError, InvalidMessage):
        return content
    return data


# --- reading ----------------------------------------------------------------------------------

_Name = Annotated[  # without U+0000, which not every store can hold
    str,
    pydantic.StringConstraints(strict=True, min_length=1, max_length=255, pattern=r"^[^\x00]+$"),
]
_Said = Annotated[str, pydantic.StringConstraints(strict=True, pattern=r"\S")]
_Time = Annotated[
    pydantic.AwareDatetime,
    Field(ge=_EARLIEST, le=model.LATEST),
    pydantic.BeforeValidator(only_time_as_text),
]


class _Entry(pydantic.BaseModel):
    """The fields that an import needs; others are ignored."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)

    job_id: _Name
    outbox_id: _Name | None = None
    company_id: _Name
    kind: _Name = model.EMAIL
    original_data: Any = None
    failed_attempts: int = Field(ge=0, le=2**31, strict=True)
    last_failure_reason: _Said
    last_failure_code: _Name = "UNKNOWN"
    last_failure_timestamp: _Time
    enqueued_at: _Time
    moved_to_dlq_at: _Time = Field(alias="movedToDLQAt")
    ttl: int = Field(ge=1, le=_LONGEST_TTL // model.MILLISECOND, strict=True)
    reason: model.DeadReason
    category: model.Category
    original_code: str | None = None
    retryable: bool = False
    scope: model.Scope = model.Scope.MESSAGE
    rule: str = "imported"
    failure_group: Annotated[str, pydantic.StringConstraints(pattern=GROUP)] | None = None
    redriven_at: _Time | None = None


def from_json(entry: object) -> model.DeadLetter:
    """The dead letter of the entry; `InvalidMessage` if it is not valid."""
    try:
        given = _Entry.model_validate(entry)
    except pydantic.ValidationError as error:
        raise InvalidMessage([_in_plain_words(each) for each in plainly(error).fields]) from None
    if given.outbox_id not in {None, given.job_id}:
        raise InvalidMessage([FieldError("outboxId", "must be the jobId")])
    failure = model.Failure(
        code=given.last_failure_code,
        category=given.category,
        retryable=given.retryable,
        scope=given.scope,
        reason=given.last_failure_reason,
        rule=given.rule,
        original_code=given.original_code,
    )
    return model.DeadLetter(
        id=model.MessageId(given.job_id),
        tenant=model.TenantId(given.company_id),
        kind=model.KindName(given.kind),
        content=_content(given.original_data),
        reason=given.reason,
        failed_attempts=given.failed_attempts,
        failure=failure,
        failed_at=_whole(given.last_failure_timestamp),
        enqueued_at=_whole(given.enqueued_at),
        moved_at=_whole(given.moved_to_dlq_at),
        ttl=given.ttl * model.MILLISECOND,
        redriven_at=None if given.redriven_at is None else _whole(given.redriven_at),
        group=given.failure_group or group_of(None, failure),
    )


def import_(file: Iterable[bytes]) -> list[model.DeadLetter]:
    """The entries of a file; `InvalidMessage` names the wrong lines."""
    letters: list[model.DeadLetter] = []
    faults: list[FieldError] = []
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            letters.append(from_json(_parsed(line)))
        except InvalidMessage as error:
            faults += [_on_line(number, each) for each in error.fields]
        if len(faults) >= _MOST_FAULTS:
            break
    if faults:
        raise InvalidMessage(faults[:_MOST_FAULTS])
    return letters


def _parsed(line: bytes) -> object:
    try:
        return orjson.loads(line)
    except ValueError:
        raise InvalidMessage([FieldError("entry", "is not JSON")]) from None


def _on_line(number: int, fault: FieldError) -> FieldError:
    return FieldError(f"line {number}: {fault.field}", fault.message, missing=fault.missing)


def _in_plain_words(fault: FieldError) -> FieldError:
    if fault.field == "lastFailureReason" and not fault.missing:
        return FieldError(fault.field, "must be a text that is not blank")
    return FieldError("entry", fault.message) if fault.field == "body" else fault


def _content(original_data: object) -> str:
    if original_data is None:
        return ""
    return original_data if isinstance(original_data, str) else _json(original_data).decode()


def _json(data: object) -> bytes:
    try:
        return orjson.dumps(data)
    except orjson.JSONEncodeError:  # it reads deeper nests than it writes
        raise InvalidMessage([FieldError("originalData", "is nested too deep")]) from None


def _whole(moment: datetime) -> datetime:
    """The time in whole milliseconds, the precision of stores."""
    return moment.astimezone(UTC).replace(microsecond=moment.microsecond // 1000 * 1000)
