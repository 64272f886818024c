"""Attachments of a mail, as downloads that no browser shows or runs."""

import base64
from urllib.parse import quote

from starlette.responses import Response

from carteiro.api.refusal import found, not_found
from carteiro.email.message import Email

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def mail_file(email: Email | None, number: str) -> Response:
    """The attachment of this number, from 1; the browser never learns its type."""
    files = found(email, "mail").attachments
    file = found(
        {str(place): each for place, each in enumerate(files, 1)}.get(number), "attachment"
    )
    try:
        content = base64.b64decode(file.content)
    except ValueError:
        raise not_found("attachment") from None
    named = f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}"
    headers = _HEADERS | {"Content-Disposition": named}
    return Response(content, headers=headers, media_type="application/octet-stream")
