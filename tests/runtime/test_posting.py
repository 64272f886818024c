"""Posting to URLs of the settings."""

from typing import Any

import httpx
import pytest

from carteiro.runtime import posting


async def test_certificates_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each notice and each repetition has a client of its own: reading them anew holds up the loop."""
    read: list[object] = []
    create = httpx.create_ssl_context

    def counted(**asked: Any) -> object:
        read.append(asked)
        return create(**asked)

    posting._trusted.cache_clear()
    monkeypatch.setattr(httpx, "create_ssl_context", counted)
    for _ in range(3):
        async with posting.client():
            pass

    assert len(read) == 1
