"""Posts small documents to URLs of the settings, such as an Alertmanager's.

Bounded in time, without redirects, and without proxies of the environment, which are for the world outside. Of the
answer only the status is read.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import httpx
import orjson

PATIENCE_S = 10.0


def client() -> httpx.AsyncClient:
    """A client for `post`."""
    return httpx.AsyncClient(verify=_trusted(), trust_env=False, timeout=PATIENCE_S)


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates to trust, read once: a client that reads them anew holds up its loop for some 30 ms."""
    return httpx.create_ssl_context(trust_env=False)


async def post(
    client: httpx.AsyncClient, url: str, body: bytes, headers: Mapping[str, str] | None = None
) -> str | None:
    """Post a JSON document; return the error, None if there was none."""
    sent = {"content-type": "application/json", **(headers or {})}
    try:
        async with (
            asyncio.timeout(PATIENCE_S),
            client.stream("POST", url, content=body, headers=sent) as answer,
        ):
            return None if answer.is_success else f"it answers {answer.status_code}"
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return str(error) or type(error).__name__


async def post_alerts(
    client: httpx.AsyncClient, url: str, alerts: Sequence[Mapping[str, Any]]
) -> str | None:
    """Post alerts to an Alertmanager (its API v2); return the error, None if there was none."""
    return await post(client, f"{url.rstrip('/')}/api/v2/alerts", orjson.dumps(alerts))


def alert_document(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, starts: datetime, ends: datetime
) -> dict[str, Any]:
    """An alert as an Alertmanager reads it; the labels decide which alerts are one."""
    return {
        "labels": {name: each for name, each in labels.items() if each},
        "annotations": {name: each for name, each in annotations.items() if each},
        "startsAt": starts.isoformat(),
        "endsAt": ends.isoformat(),
    }
