"""The body of a request: JSON, and not more of it than is read."""

from starlette.requests import Request

from carteiro.email import MAX_REQUEST_BYTES
from carteiro.intake.http.refusal import Refusal


async def read_json(request: Request) -> bytes:
    """The bytes that were sent as JSON; a `Refusal` if they are not JSON, or more than allowed."""
    _refuse_other_types(request)
    if _declared_bytes(request) > MAX_REQUEST_BYTES:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_REQUEST_BYTES:  # what was declared may be wrong, or nothing
            raise _too_large()
        chunks.append(chunk)
    return b"".join(chunks)


def _refuse_other_types(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0]
    if media_type.strip().lower() != "application/json":
        raise Refusal(415, "The body must be sent as Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "The body must be sent without Content-Encoding")


def _declared_bytes(request: Request) -> int:
    declared = request.headers.get("content-length", "")
    return int(declared) if declared.isdecimal() else 0


def _too_large() -> Refusal:
    return Refusal(413, f"The request must have at most {MAX_REQUEST_BYTES} bytes")
