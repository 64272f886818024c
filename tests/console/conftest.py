"""An app with the console, and a browser for those tests that need one."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from carteiro.app import Carteiro
from support.browser import Looker, Office, a_browser, a_looker, an_office
from support.http import opened


@pytest.fixture
async def post() -> AsyncIterator[Carteiro]:
    """An app that knows ACME, BRASA and an administrator."""
    async with opened("memory://") as office:
        yield office


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def office() -> AsyncIterator[Office]:
    """One process for all tests in a browser."""
    async with an_office() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all of them."""
    async with a_browser() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def looker(browser: Browser, office: Office) -> AsyncIterator[Looker]:
    """Somebody who is not signed in."""
    async with a_looker(browser, office) as somebody:
        yield somebody
