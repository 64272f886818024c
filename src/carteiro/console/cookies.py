"""Cookies of the console, and what a request says about its connection."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.networks import Networks, parsed_address

SESSION: Final = "carteiro"
SEED: Final = "carteiro_seed"  # of the tokens in forms, while nobody is signed in
FLASH: Final = "carteiro_flash"
LANGUAGE: Final = "carteiro_language"
THEME: Final = "carteiro_theme"
ZONE: Final = "carteiro_zone"  # set by the script
_LONGEST = 512


def is_from_proxy(request: Request, proxies: Networks) -> bool:
    """True if a trusted proxy sent the request: only then its headers are believed."""
    peer = parsed_address("" if request.client is None else request.client.host)
    return bool(proxies) and peer is not None and peer in proxies


def is_secure(request: Request, proxies: Networks) -> bool:
    """True if the browser uses https."""
    if request.scope["scheme"] == "https":
        return True
    forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
    return forwarded == "https" and is_from_proxy(request, proxies)


def is_same_origin(request: Request, proxies: Networks) -> bool:
    """True if a page of this console sent the form."""
    origins = request.headers.getlist("origin")
    if not origins:
        return request.headers.get("sec-fetch-site") == "same-origin"
    if len(origins) > 1:
        return False
    try:
        origin = urlsplit(origins[0])
    except ValueError:
        return False
    if origin.scheme == "http" and is_secure(request, proxies):
        return False
    hosts = [request.headers.get("host", "")]
    if is_from_proxy(request, proxies):
        hosts.append(request.headers.get("x-forwarded-host", ""))
    return origin.scheme in {"http", "https"} and origin.netloc.lower() in {
        each.lower() for each in hosts if each
    }


def cookie_of(request: Request, name: str, *, secure: bool) -> str:
    """The value of a cookie; empty if there is none. Over https only one that https has set counts."""
    given = request.cookies.get(_named(name, secure=secure), "")
    return given if len(given) <= _LONGEST else ""


def set_cookie(
    response: Response,
    name: str,
    content: str,
    *,
    secure: bool,
    lasts: timedelta | None = None,
) -> None:
    """Set a cookie that no script and no other site gets; without a duration until the browser is closed."""
    age = None if lasts is None else int(lasts.total_seconds())
    response.set_cookie(
        _named(name, secure=secure),
        content,
        max_age=age,
        path="/" if secure else "/console",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def drop_cookie(response: Response, name: str, *, secure: bool) -> None:
    """Remove a cookie."""
    set_cookie(response, name, "", secure=secure, lasts=timedelta(0))


def _named(name: str, *, secure: bool) -> str:
    return f"__Host-{name}" if secure else name
