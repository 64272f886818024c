"""Endpoint for many e-mails at once: each has a result of its own, all are one commit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import orjson
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.body import MAX_BATCH_BYTES, read_json, too_large
from carteiro.api.documents import JsonResponse
from carteiro.api.email_documents import BatchResults, accepted, rate_limit
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.envelope import TRACE, request_id_of
from carteiro.api.idempotency import judged_key
from carteiro.api.in_flight import SHARE, Share
from carteiro.api.intake import Intake, refused
from carteiro.api.key_ring import KeyRing
from carteiro.api.reading import Question
from carteiro.api.refusal import Refusal, bad_value, of_invalid
from carteiro.email.message import MAX_REQUEST_BYTES, Email, read_email, refuse_many_parts
from carteiro.email.plain import PlainEmail, plain_email
from carteiro.email.submission import Submission, in_places
from carteiro.errors import FieldError, InvalidMessage, NotAccepted
from carteiro.model import Accepted, Charged, KeyConflict, OverLimit, Tenant
from carteiro.path.accept import PostAnswer
from carteiro.policy.names import KEY_PATTERN
from carteiro.policy.trace_context import TraceContext
from carteiro.runtime.fair_thread import Slice

MOST_IN_A_BATCH = 1000
_MOST_PARTS = 250 * MOST_IN_A_BATCH
_MOST_STRINGS = 500 * MOST_IN_A_BATCH
_REFUSED = (Refusal, NotAccepted)
_KEY = "idempotencyKey"


class BatchItem(Email):
    """One e-mail of a batch, with a key of its own if it has one."""

    model_config = ConfigDict(extra="forbid")

    idempotency_key: str | None = Field(
        default=None, min_length=1, max_length=128, pattern=KEY_PATTERN
    )


class Batch(Question):
    """Many e-mails; an error in one does not affect the others."""

    messages: list[BatchItem] = Field(min_length=1, max_length=MOST_IN_A_BATCH)


class BatchIntake(Endpoints):
    """Endpoint of ``/v1`` for many e-mails."""

    def __init__(self, intake: Intake, keys: KeyRing) -> None:
        self._intake = intake
        self._keys = keys

    @Endpoint(
        "POST",
        "/v1/email/batch",
        "Accept many e-mails",
        BatchResults,
        reads=Batch,
        is_traced=True,
    )
    async def send(self, request: Request) -> Response:
        """200 with a result for each e-mail, in order, after the accepted ones are committed.

        The status of a result is the answer of ``/v1/email/send`` for that e-mail. An e-mail may have
        an ``idempotencyKey``, which works like the header. Refused e-mails count against the limits, too.
        """
        tenant = await self._keys.tenant_of(request, accepts=True)
        body = await read_json(request, most=MAX_BATCH_BYTES)
        share: Share = request.scope[SHARE]
        share.take_parsed(body)
        await share.write()  # few are validated at once; they are stored together
        items = _items(body)
        request_id = request_id_of(request)
        span = request.scope.get(TRACE)
        trace = None if span is None else span.of(tenant.id, len(items))
        made = await self._made(items, tenant, request_id, trace)
        submitted = [each for each in made if isinstance(each, Submission)]
        stored = await self._intake.accepting.many(submitted, share.end_turn)
        answers = in_places(stored, made, Submission)
        types = Counter(map(type, answers))
        refused = types[Refusal] + types[NotAccepted]
        charged = await self._intake.charge(request, tenant, refused) if refused else Charged(0)
        return JsonResponse({"results": await _results(made, answers, charged, request_id)})

    async def _made(
        self, items: list[Any], tenant: Tenant, request_id: str, trace: TraceContext | None
    ) -> list[Submission | Refusal]:
        """Each e-mail of a batch, validated like a request of its own; other requests have turns in between."""
        limits, relay_headers = self._intake.limits_of(tenant), self._intake.relay_headers
        turn = Slice()
        made: list[Submission | Refusal] = []
        for item in items:
            size, key = 0, None
            try:
                if isinstance(item, dict) and _KEY in item:
                    key = judged_key(item.pop(_KEY), _KEY)
                email: Email | PlainEmail | None = plain_email(item)
                if isinstance(email, PlainEmail):
                    size = len(email.content)
                else:
                    encoded = _encoded(item)
                    size = len(encoded)
                    email = read_email(encoded, relay_headers=relay_headers)
                made.append(Submission(email, tenant, request_id, key, limits, trace=trace))
            except InvalidMessage as error:
                made.append(_refusal(error, size))
            if turn.spend(size):
                await turn.pause()
        return made


def _items(body: bytes) -> list[Any]:
    refuse_many_parts(body, _MOST_PARTS, _MOST_STRINGS)
    try:
        batch = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidMessage([FieldError("body", "is not valid JSON")]) from None
    if not isinstance(batch, dict) or "messages" not in batch:
        raise InvalidMessage([FieldError("messages", "is required", missing=True)])
    if len(batch) > 1:
        raise bad_value("messages", "is the only field that is known")
    items = batch["messages"]
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_IN_A_BATCH:
        raise bad_value("messages", f"must be a list of 1 to {MOST_IN_A_BATCH} e-mails")
    return items


def _encoded(item: object) -> bytes:
    """The JSON of one e-mail of the batch."""
    if not isinstance(item, dict):
        raise InvalidMessage([FieldError("body", "must be an object")])
    try:
        return orjson.dumps(item)
    except orjson.JSONEncodeError:  # it reads deeper nests than it writes
        raise InvalidMessage([FieldError("body", "is nested too deep")]) from None


def _refusal(error: InvalidMessage, size: int) -> Refusal:
    return too_large(MAX_REQUEST_BYTES) if size > MAX_REQUEST_BYTES else of_invalid(error)


async def _results(
    made: Sequence[Submission | Refusal],
    answers: Sequence[PostAnswer | NotAccepted | Refusal],
    charged: Charged,
    request_id: str,
) -> orjson.Fragment:
    """The results as JSON; refused e-mails beyond the rate limit are reported as over it."""
    results: list[str] = []
    left = count(charged.counted, -1)  # refused ones that were counted
    turn = Slice()
    at, around = (
        None,
        [""],
    )  # of results that differ in the id alone: their time, and the text around the id
    for item, answer in zip(made, answers, strict=True):
        if isinstance(answer, Accepted) and answer.recipient_id is None:
            if answer.received_at is not at:
                at, text = answer.received_at, orjson.dumps(_told(item, answer, request_id))
                around = text.decode().split(answer.id)
            results.append(answer.id.join(around))
            continue
        over = charged.over if isinstance(answer, _REFUSED) and next(left) <= 0 else None
        results.append(orjson.dumps(_told(item, over or answer, request_id)).decode())
        if turn.spend():
            await turn.pause()
    return orjson.Fragment(f"[{','.join(results)}]")


def _told(
    item: Submission | Refusal, answer: PostAnswer | NotAccepted | Refusal, request_id: str
) -> Mapping[str, Any]:
    """A `BatchResult` as plain JSON, for speed: see `accepted`."""
    match answer:
        case OverLimit():
            over = rate_limit(answer).model_dump(by_alias=True)
            return {**_refused(refused(answer), request_id), "rateLimit": over}
        case KeyConflict() | NotAccepted():
            return _refused(refused(answer), request_id)
        case Refusal():
            return _refused(answer, request_id)
    if isinstance(item, Refusal):
        return _refused(item, request_id)
    return {"status": 202, "accepted": accepted(answer, item.email, request_id)}


def _refused(refusal: Refusal, request_id: str) -> Mapping[str, Any]:
    error = refusal.as_error(request_id).model_dump(by_alias=True)
    return {"status": refusal.status, "error": error}
