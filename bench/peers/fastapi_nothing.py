"""The peer of our HTTP API: FastAPI on uvicorn, validating the same pydantic model and storing nothing."""

import uvicorn
from fastapi import FastAPI

from carteiro.email.message import Email
from http_server import announce, listener

api = FastAPI()


@api.post("/v1/email/send", status_code=202)
async def send(email: Email) -> dict[str, str]:
    """Answer as we do, having done nothing."""
    return {
        "outboxId": "01900000-0000-7000-8000-000000000001",
        "jobId": "01900000-0000-7000-8000-000000000001",
        "requestId": "01900000-0000-7000-8000-000000000002",
        "status": "ENQUEUED",
        "receivedAt": "2026-01-01T00:00:00.000Z",
        "to": email.to,
    }


def main() -> None:
    """Serve until killed."""
    with listener() as socket:
        announce(socket)
        config = uvicorn.Config(api, log_config=None, access_log=False, ws="none")
        uvicorn.Server(config).run([socket])


if __name__ == "__main__":
    main()
