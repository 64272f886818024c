"""Sign-in, sign-out, and the choices of language and theme."""

from datetime import timedelta

from starlette.responses import Response

from carteiro.config.sections import ConsoleSettings
from carteiro.console.cookies import LANGUAGE, SESSION, THEME, drop_cookie, set_cookie
from carteiro.console.door import Door
from carteiro.console.page import ANYONE, Change, Pages, Show
from carteiro.console.rendering import ROOT
from carteiro.console.visit import Visit
from carteiro.console.words import LANGUAGES

_CHOICES_LAST = timedelta(days=400)  # browsers keep none longer
_THEMES = {"light", "dark", "system"}


class EntrancePages(Pages):
    """Pages for people who are not signed in yet."""

    def __init__(self, door: Door, settings: ConsoleSettings) -> None:
        self._door = door
        self._lasts = settings.session

    @Show("sign-in", needs=ANYONE)
    async def ask(self, visit: Visit) -> Response:
        """The form for a token; a viewer who is signed in already goes on."""
        if visit.viewer is not None:
            return visit.to(_inside(visit.query.get("next", "")))
        return visit.page("sign_in.html", next=visit.query.get("next", ""), fault="")

    @Change("sign-in", needs=ANYONE)
    async def sign_in(self, visit: Visit) -> Response:
        """Sign in with a token."""
        going = visit.form.get("next", "")
        secret = await self._door.sign_in(visit.form.get("token", "").strip(), visit.request)
        if secret is None:
            fault = visit.words("entrance.unknown")
            return visit.page("sign_in.html", status=401, next=going, fault=fault)
        return self._in(visit, secret, going)

    @Show("link/{secret}", needs=ANYONE)
    async def ask_by_link(self, visit: Visit) -> Response:
        """Ask before the one-time link is used: what looks ahead at addresses must not use it up."""
        is_valid = self._door.is_link(visit.path["secret"], visit.request)
        return visit.page("link.html", status=200 if is_valid else 404, is_valid=is_valid)

    @Change("link/{secret}", needs=ANYONE)
    async def sign_in_by_link(self, visit: Visit) -> Response:
        """Sign in with the one-time link."""
        secret = await self._door.sign_in_by_link(visit.path["secret"], visit.request)
        if secret is None:
            return visit.page("link.html", status=404, is_valid=False)
        return self._in(visit, secret, "")

    @Change("sign-out", needs=ANYONE)
    async def sign_out(self, visit: Visit) -> Response:
        """End the sign-in, also on the server."""
        await self._door.sign_out(visit.request)
        response = visit.to("sign-in")
        drop_cookie(response, SESSION, secure=visit.is_secure)
        return response

    @Change("choices", needs=ANYONE)
    async def choose(self, visit: Visit) -> Response:
        """Set language and theme of this browser."""
        response = visit.to(_inside(visit.form.get("next", "")))
        for name, known in ((LANGUAGE, LANGUAGES), (THEME, _THEMES)):
            if (chosen := visit.form.get(name.removeprefix("carteiro_"), "")) in known:
                set_cookie(response, name, chosen, secure=visit.is_secure, lasts=_CHOICES_LAST)
        return response

    def _in(self, visit: Visit, secret: str, going: str) -> Response:
        response = visit.to(_inside(going))
        set_cookie(response, SESSION, secret, secure=visit.is_secure, lasts=self._lasts)
        return response


def _inside(address: str) -> str:
    """The part of an address below the console; nothing of one that leads elsewhere."""
    inside = address.removeprefix(f"{ROOT}/")
    is_inside = address.startswith(f"{ROOT}/") and inside.isprintable()
    is_inside = is_inside and "\\" not in inside and ".." not in inside
    return inside if is_inside and not inside.startswith("/") else ""
