"""Links that unsubscribe with one click (RFC 8058); they are authenticated by their seal, not by a key.

Mail providers post to a link when their user presses their button, and scanners follow it: a GET changes nothing.
"""

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from carteiro.api.body import read_raw
from carteiro.api.docs_page import SAFE
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.in_flight import SHARE, InFlight, PerMinute
from carteiro.api.refusal import Refusal, found
from carteiro.config import Settings
from carteiro.model import Actor, UnsubscribeLink, Via
from carteiro.observability.metrics import Tally
from carteiro.path.track import unsubscribe
from carteiro.policy.unsubscribe import PATH
from carteiro.ports import Tracking
from carteiro.runtime.acting import act_as

_MOST_BYTES = 4096
_MOST_A_MINUTE = 10  # requests of one link
_FORM = (b"list-unsubscribe", b"one-click")  # in either encoding of a form
_RECIPIENT = Actor(Via.API, "recipient", "")
_PRIVATE = {
    **SAFE,
    "Content-Security-Policy": SAFE["Content-Security-Policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
}
_ASK = """<p>Do you want to stop e-mails from this sender?</p>
<p lang="pt">Não quer mais receber e-mails deste remetente?</p>
<form method="post"><button name="List-Unsubscribe" value="One-Click">Unsubscribe ·
<span lang="pt">Cancelar inscrição</span></button></form>"""
_DONE = """<p>You are unsubscribed: you will get no more e-mails from this sender.</p>
<p lang="pt">Sua inscrição foi cancelada: você não receberá mais e-mails deste remetente.</p>"""


class UnsubscribeEndpoints(Endpoints):
    """Endpoints of links; a link that is not ours is not found, before its body is read or the store is asked."""

    def __init__(self, settings: Settings, tracking: Tracking, tally: Tally) -> None:
        self._offer = settings.one_click
        self._tracking = tracking
        self._tally = tally
        bounds = settings.api
        self._in_flight = InFlight(
            most_requests=bounds.max_requests_per_tenant,
            most_bytes=bounds.max_body_bytes_per_tenant,
        )
        self._repeats = PerMinute[UnsubscribeLink](_MOST_A_MINUTE)

    @Endpoint("GET", f"{PATH}{{token}}", "Ask before unsubscribing", answers_with=HTMLResponse)
    @Endpoint("HEAD", f"{PATH}{{token}}", "Is it a link of ours?", answers_with=HTMLResponse)
    async def ask(self, request: Request) -> Response:
        """A page with a button for people; it changes nothing. Needs no key."""
        self._link_of(request)
        return _page(_ASK)

    @Endpoint(
        "POST",
        f"{PATH}{{token}}",
        "Unsubscribe",
        refuses=(400, 408, 413, 429),
        answers_with=HTMLResponse,
    )
    async def unsubscribe(self, request: Request) -> Response:
        """Suppress the recipient of the link for its tenant, with reason ``unsubscribed``; again changes nothing.

        Needs no key. The body is the form ``List-Unsubscribe=One-Click``. 429 for more than 10 requests of one link
        in a process within 60 s.
        """
        link = self._link_of(request)
        body = await read_raw(request, most=_MOST_BYTES)
        if not all(each in body.lower() for each in _FORM):
            raise Refusal(400, "The body must be the form List-Unsubscribe=One-Click")
        self._repeats.count(link, "requests of one link")
        request.scope.pop(SHARE).end()  # that of the address; a tenant has a share of the store
        self._in_flight.begin(request.scope, link.tenant)
        await request.scope[SHARE].write()
        act_as(_RECIPIENT)
        await unsubscribe(link, tracking=self._tracking, tally=self._tally)
        return _page(_DONE)

    def _link_of(self, request: Request) -> UnsubscribeLink:
        token = request.path_params["token"]
        return found(None if self._offer is None else self._offer.opened(token), "link")


def _page(body: str) -> Response:
    """The same for every link: it shows neither address nor sender."""
    page = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Unsubscribe</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:30rem;margin:4rem auto;padding:0 1rem}}
button{{font:inherit;padding:.5rem 1rem}}</style></head><body>
{body}
</body></html>
"""
    return HTMLResponse(page, headers=_PRIVATE)
