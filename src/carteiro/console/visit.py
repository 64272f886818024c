"""One request of a viewer: what pages read of it, and how they answer."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from carteiro.api.body import read_body
from carteiro.api.key_ring import within
from carteiro.api.refusal import Refusal
from carteiro.api.rights import RIGHTS, Right
from carteiro.console import moments
from carteiro.console.cookies import (
    FLASH,
    LANGUAGE,
    SEED,
    SESSION,
    THEME,
    ZONE,
    cookie_of,
    drop_cookie,
    is_secure,
    set_cookie,
)
from carteiro.console.door import How, Viewer, form_token
from carteiro.console.navigation import PLACES, Place
from carteiro.console.rendering import ROOT, environment
from carteiro.console.words import language_for, words_in
from carteiro.model import TenantId

if TYPE_CHECKING:
    from carteiro.console.site import Console

_FORM = "application/x-www-form-urlencoded"
_MOST_FORM_BYTES = 2 * 1024 * 1024
_MOST_OF_STRANGERS = 64 * 1024  # bytes of a form; theirs are small
_MOST_FIELDS = 1000
_MOST_FILTERS = 100
_LONGEST_FILTERS = 10_000  # characters; the longest field of a form in an address has 4,000
_SEED_BYTES = 16
_THEMES = {"light", "dark"}


class Visit:
    """A request; ``viewer`` None: nobody is signed in."""

    def __init__(self, request: Request, viewer: Viewer | None, console: "Console") -> None:
        self.request = request
        self.viewer = viewer
        self.console = console
        self.form: Mapping[str, str] = {}
        self.is_secure = is_secure(request, console.proxies)
        language = language_for(
            request.cookies.get(LANGUAGE), request.headers.get("accept-language", "")
        )
        self.words = words_in(language)
        self.seed = self.cookie(SEED) or secrets.token_urlsafe(_SEED_BYTES)

    # --- what it asks

    def check_filters(self) -> None:
        """Raise a `Refusal` if the address has more of them than any page reads: pages repeat them in their links."""
        given = self.request.query_params.multi_items()
        length = sum(len(name) + len(text) for name, text in given)
        if len(given) > _MOST_FILTERS or length > _LONGEST_FILTERS:
            raise Refusal(400, "The address of the page is too long")

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The filters in the address; empty ones, which forms send, are left out."""
        return {name: text for name, text in self.request.query_params.items() if text}

    @property
    def path(self) -> Mapping[str, str]:
        """The parts of the address that are in braces in the path of the page."""
        return self.request.path_params

    def within(self, asked: str | None = None) -> TenantId | None:
        """The tenant that this request is limited to; see `key_ring.within`."""
        return within(self.request, asked or None)

    def may(self, needs: str) -> bool:
        """True if the viewer may use this endpoint of the API: of the tenant of their token, if it has one."""
        return self.has(RIGHTS[needs])

    def has(self, right: Right) -> bool:
        """True if the viewer has this right."""
        if self.viewer is None:
            return False
        token = self.viewer.token
        is_theirs = token.tenant is None or right.scoped
        return is_theirs and token.role is not None and token.role.covers(right.least)

    async def read_form(self) -> None:
        """Read the fields of a form; a `Refusal` if it was not sent by a page that this viewer got."""
        most = _MOST_OF_STRANGERS if self.viewer is None else _MOST_FORM_BYTES
        body = await read_body(self.request, _FORM, most=most)
        try:
            fields = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
            )
        except ValueError:
            raise Refusal(400, "The form cannot be read") from None
        self.form = dict(fields)
        if self.form.get("form_token") != self.form_token:
            raise Refusal(403, self.words("shell.form_expired"))

    # --- how it looks

    @property
    def appearance(self) -> tuple[str, str]:
        """Pages with the same appearance show the same thing in the same way."""
        return self.words.language, str(self.zone)  # not the cookie: it may have any text

    @cached_property
    def zone(self) -> tzinfo:
        """The zone of the viewer, as the script of the page has said it; else UTC."""
        return moments.zone_of(self.cookie_as_sent(ZONE))

    @property
    def theme(self) -> str:
        """``light`` or ``dark`` by choice; empty: by system."""
        chosen = self.cookie(THEME)
        return chosen if chosen in _THEMES else ""

    @cached_property
    def form_token(self) -> str:
        """The token for forms of this viewer."""
        return form_token(self.cookie(SESSION) or self.seed)

    def cookie(self, name: str) -> str:
        """The value of a cookie of ours; empty if there is none."""
        return cookie_of(self.request, name, secure=self.is_secure)

    def cookie_as_sent(self, name: str) -> str:
        """The value of a cookie that the script set."""
        return cookie_of(self.request, name, secure=False)

    # --- the answer

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - whatever it shows
        """The rendered template."""
        response = HTMLResponse(self.rendered(template, **values), status)
        if self.cookie(SEED) != self.seed:
            set_cookie(response, SEED, self.seed, secure=self.is_secure)
        if self.cookie(FLASH):
            drop_cookie(response, FLASH, secure=self.is_secure)
        return response

    def rendered(self, template: str, **values: Any) -> str:  # noqa: ANN401 - whatever it shows
        """The template as HTML: a page, or a part of one."""
        made = environment().get_template(template)
        html: str = made.render(visit=self, t=self.words, **values)
        return html

    def to(self, path: str, *, flash: str = "", **values: object) -> Response:
        """A redirect to another page, which shows the word ``flash``, with its values, once."""
        response = RedirectResponse(f"{ROOT}/{path}", 303)
        if flash:
            said = urlencode(
                {"": flash, **{name: str(each)[:100] for name, each in values.items()}}
            )
            set_cookie(
                response, FLASH, quote(said), secure=self.is_secure, lasts=timedelta(minutes=1)
            )
        return response

    @property
    def flash(self) -> str:
        """The result of the page before; empty if there is none."""
        said = dict(parse_qsl(unquote(self.cookie(FLASH))[:1000], keep_blank_values=True))
        key = said.pop("", "")
        text = self.words.texts.get(key, "")
        try:
            return str(text.format_map(said))
        except (KeyError, ValueError, IndexError, AttributeError):
            return ""

    # --- for templates

    @property
    def places(self) -> list[Place]:
        """The entries of the menu that this viewer may see."""
        return [each for each in PLACES if self.console.is_open_to(each.path, self)]

    @property
    def here(self) -> str:
        """The first part of the address, to mark it in the menu."""
        return self._below.partition("/")[0]

    @property
    def _below(self) -> str:
        path: str = self.request.scope["path"]
        return path.removeprefix(ROOT).strip("/")

    @property
    def address(self) -> str:
        """The address of this page, with its filters."""
        query = urlencode(self.query)
        path = self.request.scope["path"]
        return f"{path}?{query}" if query else path

    @property
    def can_sign_out(self) -> bool:
        """True unless a proxy names the user: it would name them again at once."""
        return self.viewer is not None and self.viewer.how is not How.PROXY

    def link(self, path: str = "", **query: object) -> str:
        """The address of a page with these filters; None and empty ones are left out."""
        given = urlencode({name: each for name, each in query.items() if each not in {None, ""}})
        return f"{ROOT}/{quote(path)}{'?' if given else ''}{given}"

    def same(self, **changes: object) -> str:
        """The address of this page with some filters changed; None removes one. The place in the list is lost."""
        changed = {
            name: "" if each in {None, ""} else urlencode({name: each})
            for name, each in {"cursor": None, **changes}.items()
        }
        query = "&".join(filter(None, {**self._filters, **changed}.values()))
        return f"{self.link(self._below)}{'?' if query else ''}{query}"

    @cached_property
    def _filters(self) -> Mapping[str, str]:
        """The filters as an address has them, written once: a page may have hundreds of links to itself."""
        return {name: urlencode({name: text}) for name, text in self.query.items()}

    def short(self, moment: datetime) -> str:
        """A time as people read it."""
        return moments.short(moment, self.zone, self.words.language, now=datetime.now(UTC))

    def exact(self, moment: datetime) -> str:
        """A time with all of its parts."""
        return moments.exact(moment, self.zone)

    @staticmethod
    def lasting(span: timedelta) -> str:
        """A duration as people read it."""
        return moments.lasting(span)
