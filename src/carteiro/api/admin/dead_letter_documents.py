"""Dead letters as the API shows them, and the requests about them."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import Field, RootModel
from starlette.requests import Request

from carteiro import model
from carteiro.api.documents import Document, Moment, PageDocument
from carteiro.api.email_documents import EventView
from carteiro.api.key_ring import within
from carteiro.api.reading import PageQuestion, Question, Time
from carteiro.ports.dead_letters import GroupBy
from carteiro.views.dead_letters import to_json

MOST_AT_ONCE = 1000
_LONGEST = 255
_LONGEST_AGE = timedelta(days=3650)


# --- requests -----------------------------------------------------------------------------------


class DeadQuestion(Question):
    """A selection of dead letters; a field that is not given does not restrict it."""

    company_id: str | None = Field(default=None, max_length=_LONGEST)
    kind: str | None = Field(default=None, max_length=_LONGEST)
    reason: model.DeadReason | None = None
    code: str | None = Field(default=None, max_length=_LONGEST)
    category: model.Category | None = None
    group: str | None = Field(
        default=None, max_length=_LONGEST, description="The failure group: failures that are alike."
    )
    text: str | None = Field(
        default=None, max_length=_LONGEST, description="Looked for in code, reason and address."
    )
    moved_after: Time | None = None
    moved_before: Time | None = None
    is_redriven: bool | None = None

    def as_filter(self) -> model.DeadFilter:
        """The same, for stores."""
        asked = self.model_dump(include=set(DeadQuestion.model_fields))
        return model.DeadFilter(tenant=asked.pop("company_id"), **asked)


class DeadPageQuestion(DeadQuestion, PageQuestion):
    """A selection of dead letters, and a page of its list."""


class GroupQuestion(DeadQuestion):
    """A selection of dead letters, and the field to group by."""

    by: GroupBy = "code"


class RedriveQuestion(Question):
    """The dead letters to redrive at once: those with these ids, or those that match.

    For many, start a redrive instead: it tries a few first.
    """

    ids: list[UUID] | None = Field(
        default=None, min_length=1, max_length=MOST_AT_ONCE, fail_fast=True
    )
    matching: DeadQuestion | None = None
    limit: int = Field(default=100, ge=1, le=MOST_AT_ONCE)


class Changes(RootModel[dict[str, Any]]):
    """Changed fields, by their names in an Email (or a task's arguments); null removes a field."""


class PurgeQuestion(Question):
    """The dead letters to delete: those that match and are older."""

    older_than_ms: int = Field(ge=0, le=_LONGEST_AGE // model.MILLISECOND, strict=True)
    matching: DeadQuestion = DeadQuestion()

    def as_filter(self, now: datetime) -> model.DeadFilter:
        """The same, for stores; redriven ones are excluded."""
        end = now - self.older_than_ms * model.MILLISECOND
        wanted = self.matching.as_filter()
        return replace(wanted, moved_before=min(end, wanted.moved_before or end), is_redriven=False)


# --- answers ------------------------------------------------------------------------------------


class DeadLetterView(Document):
    """A message that could not be delivered."""

    job_id: str
    outbox_id: str
    company_id: str
    kind: str
    failed_attempts: int
    last_failure_reason: str
    last_failure_code: str
    last_failure_timestamp: Moment
    enqueued_at: Moment
    moved_to_dlq_at: Moment = Field(alias="movedToDLQAt")
    ttl: int
    reason: model.DeadReason
    category: model.Category
    original_code: str | None
    retryable: bool
    scope: model.Scope
    rule: str
    failure_group: str
    redriven_at: Moment | None


class AwaitedRecoveryView(Document):
    """The recovery that a dead letter waits for. ``provider`` null: none redrives it, and ``text`` says why.

    ``round`` of ``rounds`` is the next automatic redrive, not before ``notBefore``.
    """

    text: str
    provider: str | None
    not_before: Moment | None
    round: int | None
    rounds: int | None


class DeadLetterDetail(DeadLetterView):
    """A dead letter with its content (null once pruned) and its history, oldest first."""

    automatic_redrive: AwaitedRecoveryView
    original_data: Any
    events: list[EventView]


class DeadLetterPage(PageDocument):
    """Matching dead letters, newest first, without their content."""

    items: list[DeadLetterView]


class GroupView(Document):
    """Dead letters with the same value of a field."""

    key: str
    count: int
    oldest: Moment
    newest: Moment


class Groups(Document):
    """Groups, the largest first."""

    items: list[GroupView]


class Redriven(Document):
    """The result of a redrive of one dead letter."""

    outbox_id: str
    answer: model.RedriveAnswer


class RedriveResults(Document):
    """The results of a redrive; ``hasMore``: repeat the request for the others."""

    results: list[Redriven]
    has_more: bool


class Purged(Document):
    """The number of deleted entries; ``hasMore``: repeat the request."""

    dropped: int
    has_more: bool


class Restored(Document):
    """The number of entries that were read, and of those that were restored."""

    given: int
    restored: int


def wanted_by(request: Request, asked: DeadQuestion) -> model.DeadFilter:
    """The selection of a request, within the tenant of its token."""
    return replace(asked.as_filter(), tenant=within(request, asked.company_id))


def letter_view(letter: model.DeadLetter) -> DeadLetterView:
    """One line of a list."""
    entry = to_json(letter)
    del entry["originalData"]
    return DeadLetterView.model_validate(entry)
