"""Endpoints of dead letters: find, show, redrive, edit, export, import and purge them."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from carteiro.api import redriving
from carteiro.api.admin import dead_letter_documents as dead
from carteiro.api.body import JSON_LINES, MAX_BATCH_BYTES, read_body
from carteiro.api.emails import message_id
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import name_of, within
from carteiro.api.reading import read_query, read_question
from carteiro.api.redriving import WHAT as _WHAT
from carteiro.api.refusal import bad_value, found
from carteiro.model import AutomaticPlan, DeadLetter, MessageId, RedriveAnswer
from carteiro.policy.tenancy import SendingRules
from carteiro.ports import Backend
from carteiro.runtime.awaited_recoveries import awaited_recovery_of
from carteiro.views.dead_letters import exported, import_, to_json

_PATIENCE_S = 10.0  # the longest time of one request


class JsonLines(StreamingResponse):
    """One JSON document a line."""

    media_type = JSON_LINES


class DeadLetterEndpoints(Endpoints):
    """Endpoints of administrators for dead letters."""

    prefix = "/admin/v1/dead-letters"

    def __init__(self, backend: Backend, rules: SendingRules, plan: AutomaticPlan) -> None:
        self._rules = rules
        self._plan = plan
        self._letters = backend.dead_letters
        self._reading = backend.reading
        self._backend = backend

    # --- reading

    @Endpoint("GET", "", "List dead letters", dead.DeadLetterPage, query=dead.DeadPageQuestion)
    async def list(self, request: Request) -> Response:
        """Matching dead letters, newest first, without their content."""
        asked = read_query(request, dead.DeadPageQuestion)
        wanted = dead.wanted_by(request, asked)
        page = await self._letters.find(
            wanted, cursor=asked.after, limit=asked.limit, is_whole=False
        )
        return dead.DeadLetterPage.response(page, dead.letter_view)

    @Endpoint("GET", "/groups", "Group dead letters", dead.Groups, query=dead.GroupQuestion)
    async def group(self, request: Request) -> Response:
        """The number of matching dead letters by a field, the largest group first."""
        asked = read_query(request, dead.GroupQuestion)
        groups = await self._letters.group(asked.by, dead.wanted_by(request, asked))
        return dead.Groups(items=[dead.GroupView.of(each) for each in groups]).as_response()

    @Endpoint(
        "GET", "/export", "Export dead letters", query=dead.DeadQuestion, answers_with=JsonLines
    )
    async def export(self, request: Request) -> Response:
        """Matching dead letters with their history, one JSON document a line, newest first."""
        wanted = dead.wanted_by(request, read_query(request, dead.DeadQuestion))
        return JsonLines(await exported(self._letters, self._reading, wanted))

    @Endpoint("GET", "/{id}", "Look at a dead letter", dead.DeadLetterDetail)
    async def show(self, request: Request) -> Response:
        """One dead letter with its content, its history, oldest first, and what it waits for."""
        letter = await self._found(request)
        events = await self._reading.events(letter.id)
        told = await awaited_recovery_of(self._backend, letter, plan=self._plan)
        awaited_recovery = dead.AwaitedRecoveryView.of(told).model_dump(by_alias=True)
        document = to_json(letter, events) | {"automaticRedrive": awaited_recovery}
        return dead.DeadLetterDetail.model_validate(document).as_response(nulls=True)

    # --- redriving

    @Endpoint("POST", "/{id}/redrive", "Redrive a dead letter", dead.Redriven, refuses=(409,))
    async def redrive(self, request: Request) -> Response:
        """Give it a new round of attempts and a new ttl; 409 if it was redriven already."""
        identity = message_id(request.path_params["id"], _WHAT)
        own = within(request)
        await redriving.redrive_one(self._backend, identity, tenant=own, by=name_of(request))
        return _redriven(identity)

    @Endpoint(
        "POST",
        "/{id}/edit",
        "Edit and redrive a dead letter",
        dead.Redriven,
        reads=dead.Changes,
        refuses=(409,),
    )
    async def edit(self, request: Request) -> Response:
        """Redrive it with some fields changed, as a new revision; null removes a field.

        The result is validated like a new message. Of a task, only the arguments can be changed.
        """
        letter = await self._found(request)
        asked = await read_question(request, dead.Changes)
        revision = await redriving.revised(self._backend, letter, asked.root, self._rules)
        await redriving.redrive_revised(self._backend, letter, revision, by=name_of(request))
        return _redriven(letter.id)

    @Endpoint(
        "POST", "/redrive", "Redrive dead letters", dead.RedriveResults, reads=dead.RedriveQuestion
    )
    async def redrive_many(self, request: Request) -> Response:
        """Redrive those with the ids, or the newest that match and were not redriven, at once; a result for each."""
        asked = await read_question(request, dead.RedriveQuestion)
        ids, has_more = await self._asked_for(request, asked)
        answers = await self._letters.redrive(ids, by=name_of(request))
        results = [
            dead.Redriven(outbox_id=identity, answer=answer)
            for identity, answer in zip(ids, answers, strict=True)
        ]
        return dead.RedriveResults(results=results, has_more=has_more).as_response()

    # --- restoring and deleting

    @Endpoint("POST", "/import", "Import dead letters", dead.Restored, reads_lines=True)
    async def import_(self, request: Request) -> Response:
        """Restore exported entries whose messages are still dead and have no entry."""
        body = await read_body(request, JSON_LINES, most=MAX_BATCH_BYTES)
        letters = import_(body.splitlines())
        restored = 0
        for first in range(0, len(letters), dead.MOST_AT_ONCE):
            restored += await self._letters.restore(letters[first : first + dead.MOST_AT_ONCE])
        return dead.Restored(given=len(letters), restored=restored).as_response()

    @Endpoint("POST", "/purge", "Purge dead letters", dead.Purged, reads=dead.PurgeQuestion)
    async def purge(self, request: Request) -> Response:
        """Delete entries that match and are older, except redriven ones; the messages stay."""
        asked = await read_question(request, dead.PurgeQuestion)
        tenant = within(request, asked.matching.company_id)
        wanted = replace(asked.as_filter(datetime.now(UTC)), tenant=tenant)
        dropped, cursor = 0, None
        until = time.monotonic() + _PATIENCE_S
        while True:
            page = await self._letters.find(
                wanted, cursor=cursor, limit=dead.MOST_AT_ONCE, is_whole=False
            )
            dropped += await self._letters.drop([each.id for each in page.rows])
            cursor = page.next
            if cursor is None or time.monotonic() > until:
                return dead.Purged(dropped=dropped, has_more=cursor is not None).as_response()

    async def _found(self, request: Request) -> DeadLetter:
        identity = message_id(request.path_params["id"], _WHAT)
        return await redriving.found_letter(self._backend, identity, tenant=within(request))

    async def _asked_for(
        self, request: Request, asked: dead.RedriveQuestion
    ) -> tuple[Sequence[MessageId], bool]:
        """The ids to redrive now; True if others are left for later."""
        limit = asked.limit
        if asked.matching is not None and asked.ids is None:
            wanted = replace(dead.wanted_by(request, asked.matching), is_redriven=False)
            page = await self._letters.find(wanted, limit=limit, is_whole=False)
            return [each.id for each in page.rows], page.next is not None
        if asked.ids is not None and asked.matching is None:
            ids = [MessageId(str(each)) for each in asked.ids[:limit]]
            if (own := within(request)) is not None:  # of a token for one tenant: no other's
                for each in ids:
                    found(await self._reading.message(each, tenant=own), _WHAT)
            return ids, len(asked.ids) > limit
        raise bad_value("ids", "is needed, or matching, and not both")


def _redriven(identity: MessageId) -> Response:
    return dead.Redriven(outbox_id=identity, answer=RedriveAnswer.REDRIVEN).as_response()
