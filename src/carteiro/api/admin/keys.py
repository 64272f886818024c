"""Endpoints of keys: those of a tenant, and the tokens of administrators."""

from datetime import timedelta

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.access_keys import hash_key, hint_of, make_key, make_token
from carteiro.api.documents import Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import KeyRing, token_of
from carteiro.api.reading import Question, read_question
from carteiro.api.refusal import Refusal, not_found
from carteiro.api.whose import found_tenant
from carteiro.model import MILLISECOND, MOST_LIVE_KEYS, KeyId, TenantId, TenantUnknown, TooManyKeys
from carteiro.ports import Keys, Tenants

_LONGEST_LIFE = timedelta(days=3650)
_OF_TENANT = "/admin/v1/tenants/{tenant}/keys"
_OF_ADMINISTRATORS = "/admin/v1/keys"


class NewKey(Question):
    """A key to create; without a time it is valid until it is revoked."""

    expires_in_ms: int | None = Field(
        default=None, ge=1, le=_LONGEST_LIFE // MILLISECOND, strict=True
    )


class KeyView(Document):
    """A key without its secret; ``companyId`` null: an admin token."""

    id: str
    company_id: str | None
    hint: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    last_used_at: Moment | None


class MadeKey(KeyView):
    """A new key, shown only once."""

    key: str


class KeyList(Document):
    """Keys, newest first, expired and revoked ones too."""

    items: list[KeyView]


class KeyEndpoints(Endpoints):
    """Endpoints of administrators for keys."""

    def __init__(self, keys: Keys, tenants: Tenants, ring: KeyRing) -> None:
        self._keys = keys
        self._tenants = tenants
        self._ring = ring

    @Endpoint("GET", _OF_TENANT, "List each key of a tenant", KeyList)
    @Endpoint("GET", _OF_ADMINISTRATORS, "List each admin token", KeyList)
    async def list(self, request: Request) -> Response:
        """Keys, newest first, expired and revoked ones too; never the keys themselves."""
        keys = await self._keys.list(await self._owner(request))
        items = [KeyView.of(each, company_id=each.tenant) for each in keys]
        return KeyList(items=items).as_response(nulls=True)

    @Endpoint(
        "POST",
        _OF_TENANT,
        "Make another key of a tenant",
        MadeKey,
        status=201,
        reads=NewKey,
        refuses=(409,),
    )
    @Endpoint(
        "POST",
        _OF_ADMINISTRATORS,
        "Make another admin token",
        MadeKey,
        status=201,
        reads=NewKey,
        refuses=(409,),
    )
    async def make(self, request: Request) -> Response:
        """Create a key; this answer alone contains it, only its hash is stored."""
        owner = await self._owner(request)
        asked = await read_question(request, NewKey)
        expires_in = None if asked.expires_in_ms is None else asked.expires_in_ms * MILLISECOND
        key = make_token() if owner is None else make_key()
        made = await self._keys.add(
            owner, key_hash=hash_key(key), hint=hint_of(key), expires_in=expires_in
        )
        match made:
            case TenantUnknown():
                raise not_found("tenant")
            case TooManyKeys():
                text = f"There are {MOST_LIVE_KEYS} live keys already: revoke one first"
                raise Refusal(409, text)
        document = MadeKey.of(made, company_id=owner, key=key)
        return document.as_response(201, nulls=True)

    @Endpoint(
        "DELETE", _OF_TENANT + "/{key}", "Revoke one key of a tenant", status=204, refuses=(409,)
    )
    @Endpoint(
        "DELETE",
        _OF_ADMINISTRATORS + "/{key}",
        "Revoke one admin token",
        status=204,
        refuses=(409,),
    )
    async def revoke(self, request: Request) -> Response:
        """Revoke it from now on; other processes notice within a few seconds.

        A token cannot revoke itself (409): create another one and use that.
        """
        owner = await self._owner(request)
        key = KeyId(request.path_params["key"])
        if key == token_of(request).id:
            raise Refusal(409, "A token cannot revoke itself: use another one")
        [was_live] = await self._keys.revoke([key], tenant=owner)
        if not was_live:
            raise not_found("live key")
        self._ring.forget()
        return Response(status_code=204)

    async def _owner(self, request: Request) -> TenantId | None:
        if "tenant" not in request.path_params:
            return None
        return (await found_tenant(self._tenants, request)).id
