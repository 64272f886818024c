"""Stylesheet, script and pictures: read once, under addresses that change with their content."""

from functools import cache
from hashlib import sha256
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from carteiro.model import value

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOR_GOOD = "public, max-age=31536000, immutable"


@value
class Asset:
    """A file, its media type, and the tag of its content."""

    content: bytes
    type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """All files, by their name with the tag in it: ``console.0123456789ab.css``."""
    found = {}
    for file in (resources.files("carteiro.console") / "static").iterdir():
        stem, _, ending = file.name.rpartition(".")
        if ending in _TYPES:
            content = file.read_bytes()
            tag = sha256(content).hexdigest()[:12]
            found[f"{stem}.{tag}.{ending}"] = Asset(content, _TYPES[ending], tag)
    return found


@cache
def address_of(name: str) -> str:
    """The address of a file below the console."""
    stem, _, ending = name.rpartition(".")
    [found] = [each for each in assets() if each.startswith(f"{stem}.") and each.endswith(ending)]
    return f"static/{found}"


def show_asset(request: Request) -> Response | None:
    """Answer with a file; None if there is none of this name."""
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return None
    headers = {"Cache-Control": _FOR_GOOD, "ETag": f'"{asset.tag}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers=headers, media_type=asset.type)
