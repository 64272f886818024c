"""A real browser in front of a real process; both are started once for all tests of a process."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.console.site import add_console
from carteiro.model import Role, TenantId
from support.builders import ACME
from support.console import a_token, filled, values_of_paths
from support.http import opened
from support.running import up
from support.services import a_folder, made, program

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 800}
# The secret of a token for each kind of viewer.
VIEWERS: dict[str, tuple[Role, TenantId | None]] = {
    "viewer": (Role.VIEWER, None),
    "operator": (Role.OPERATOR, None),
    "admin": (Role.ADMIN, None),
    "acme": (Role.OPERATOR, ACME),
}
_AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Office:
    """A running process with the console: its address, its store, and the addresses of all pages to look at."""

    def __init__(self, address: str, link: str, pages: Sequence[str], store: str) -> None:
        self.address = address
        self.store = store
        self.link = link
        self.pages = pages


@asynccontextmanager
async def an_office() -> AsyncIterator[Office]:
    """A process on SQLite, with one of everything in its store, and a token for each kind of viewer."""
    with a_folder("console", ours=True) as folder:
        store = f"sqlite:///{folder / 'carteiro.db'}"
        pages = await _filled(store)
        async with up(folder) as running:
            [link] = re.findall(r"/console/(link/\S+)", running.announced)
            yield Office(running.address, link, pages, store)


async def _filled(store: str) -> list[str]:
    async with opened(store) as post:
        for name, (role, tenant) in VIEWERS.items():
            await a_token(post.backend, name, role=role, tenant=tenant)
        return pages_of(post, await values_of_paths(post))


def pages_of(post: Carteiro, values: dict[str, dict[str, str]]) -> list[str]:
    """The addresses of all pages below the console that people look at."""
    found = []
    for method, path in add_console(create_api(post), post).shown:
        own = values.get(path.partition("/")[0], {})
        if method == "GET" and path != "live":
            found.append(filled(path, own))
    return found


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """Debian's Chromium, without a window."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program("chromium"),
            # Containers have no rights for its sandbox, and little shared memory. It sees pages of ours alone.
            args=["--no-sandbox", "--disable-dev-shm-usage"],
        )
        try:
            yield browser
        finally:
            await browser.close()


class Looker:
    """Somebody in front of a page. Errors of the page, and what its policy blocks, are collected in ``faults``."""

    def __init__(self, page: Page, office: Office) -> None:
        self.page = page
        self.office = office
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.faults.append(message.text)

    async def at(self, path: str = "") -> Page:
        """The page, at this address below the console."""
        await self.page.goto(f"{self.office.address}/console/{path}")
        return self.page

    async def signed_in(self, token: str) -> "Looker":
        """The same person, signed in with the token of this name."""
        page = await self.at("sign-in")
        await page.fill("[name=token]", f"ca_{token}")
        await page.click("main button")
        await page.wait_for_selector("nav[aria-label]", state="attached")
        return self

    async def barriers(self) -> list[str]:
        """The findings of axe on the page: barriers for people with disabilities."""
        await self.page.evaluate(
            made("browser/node_modules/axe-core/axe.min.js").read_text("utf-8")
        )
        found = await self.page.evaluate(
            "async (tags) => (await axe.run({runOnly: tags})).violations", _AXE_TAGS
        )
        return [
            f"{each['id']}: {each['help']} {[node['html'][:200] for node in each['nodes']]}"
            for each in found
        ]

    async def overflow(self) -> int:
        """The number of pixels that the page is wider than the screen."""
        width: int = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return max(0, width)


@asynccontextmanager
async def a_looker(browser: Browser, office: Office, **options: Any) -> AsyncIterator[Looker]:
    """Somebody with cookies of their own; at the end, no page of theirs may have had an error."""
    options = {"viewport": DESK, "locale": "en-US", "timezone_id": "UTC"} | options
    context = await browser.new_context(**options)
    context.set_default_timeout(15_000)
    try:
        looker = Looker(await context.new_page(), office)
        yield looker
        assert looker.faults == [], looker.faults
    finally:
        await context.close()
