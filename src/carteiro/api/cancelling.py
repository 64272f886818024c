"""Cancelling one message, for tenants and administrators."""

from starlette.responses import Response

from carteiro.api.email_documents import Cancelled
from carteiro.api.refusal import Refusal, not_found
from carteiro.model import CancelAnswer, State, StoredMessage
from carteiro.ports import Store


async def cancel(store: Store, message: StoredMessage, what: str) -> Response:
    """Cancel a waiting message (200), prevent a second attempt of one in flight (202), else refuse."""
    [answer] = await store.cancel([message.id], tenant=message.tenant)
    match answer:
        case CancelAnswer.CANCELLED:
            return _cancelled(message, State.CANCELLED, requested=False).as_response()
        case CancelAnswer.REQUESTED:
            return _cancelled(message, message.state, requested=True).as_response(202)
        case CancelAnswer.FINISHED:
            raise Refusal(409, f"The {what} is finished: there is nothing to cancel")
        case CancelAnswer.NOT_FOUND:
            raise not_found(what)


def _cancelled(message: StoredMessage, state: State, *, requested: bool) -> Cancelled:
    return Cancelled(outbox_id=message.id, status=state, cancel_requested=requested)
