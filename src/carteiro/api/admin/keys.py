"""Endpoints of keys: those of a tenant, and the tokens of administrators."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from carteiro.api.access_keys import hash_key, hint_of, make_key, make_token
from carteiro.api.documents import Document, Moment
from carteiro.api.endpoint import Endpoint, Endpoints
from carteiro.api.key_ring import KeyRing, token_of
from carteiro.api.reading import Question, read_question
from carteiro.api.refusal import Refusal, not_found
from carteiro.api.whose import found_tenant
from carteiro.model import (
    MILLISECOND,
    MOST_LIVE_TOKENS,
    Key,
    KeyId,
    NameTaken,
    Role,
    TenantId,
    TenantUnknown,
    TooManyKeys,
)
from carteiro.policy.names import HOLDER_RULE, is_holder
from carteiro.ports import Keys, Tenants


def _named(given: str) -> str:
    if not is_holder(given):
        raise ValueError(HOLDER_RULE)
    return given


_Name = Annotated[
    str,
    StringConstraints(max_length=64),
    AfterValidator(_named),
    Field(description=HOLDER_RULE),
]
_LONGEST_LIFE = timedelta(days=3650)
_OF_TENANT = "/admin/v1/tenants/{tenant}/keys"
_OF_ADMINISTRATORS = "/admin/v1/keys"


class NewKey(Question):
    """A key to create; without a time it is valid until it is revoked. Its name is that of audit rows."""

    name: _Name | None = None
    expires_in_ms: int | None = Field(
        default=None, ge=1, le=_LONGEST_LIFE // MILLISECOND, strict=True
    )


class NewToken(NewKey):
    """An admin token to create; with ``companyId`` it is for that tenant alone."""

    name: _Name
    role: Annotated[Role, Field(strict=False)]
    company_id: str | None = None


class KeyView(Document):
    """A key without its secret; ``role`` null: the API key of a tenant, otherwise an admin token.

    ``companyId`` null: a token for all tenants.
    """

    id: str
    company_id: str | None
    name: str
    role: Role | None
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
        """Keys, newest first, also the 200 newest expired or revoked ones; never the keys themselves."""
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
        reads=NewToken,
        refuses=(409,),
    )
    async def make(self, request: Request) -> Response:
        """Create a key; this answer alone contains it, only its hash is stored."""
        owner = await self._owner(request)
        asked = await read_question(request, NewToken if owner is None else NewKey)
        role, tenant = None, owner
        if isinstance(asked, NewToken):
            role = asked.role
            tenant = None if asked.company_id is None else TenantId(asked.company_id)
        lasts = None if asked.expires_in_ms is None else asked.expires_in_ms * MILLISECOND
        made, key = await add_key(
            self._keys, tenant, name=asked.name or "", expires_in=lasts, role=role
        )
        document = MadeKey.of(made, company_id=made.tenant, key=key)
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
        await revoke_key(self._keys, self._ring, request, owner)
        return Response(status_code=204)

    async def _owner(self, request: Request) -> TenantId | None:
        if "tenant" not in request.path_params:
            return None
        return (await found_tenant(self._tenants, request)).id


async def add_key(
    keys: Keys,
    tenant: TenantId | None,
    *,
    name: str,
    expires_in: timedelta | None,
    role: Role | None = None,
) -> tuple[Key, str]:
    """Make a key of a tenant, or a token with this role; and return it with its secret, which nobody sees again."""
    key = make_key() if role is None else make_token()
    made = await keys.add(
        tenant,
        key_hash=hash_key(key),
        hint=hint_of(key),
        expires_in=expires_in,
        name=name,
        role=role,
    )
    match made:
        case TenantUnknown():
            raise not_found("tenant")
        case NameTaken():
            text = "A live token with this name has another role or tenant: choose another name"
            raise Refusal(409, text)
        case TooManyKeys(live):
            what = "keys of this tenant" if role is None else "tokens with this name"
            what = "tokens" if len(live) == MOST_LIVE_TOKENS else what
            raise Refusal(409, f"There are {len(live)} live {what} already: revoke one first")
    return made, key


async def revoke_key(keys: Keys, ring: KeyRing, request: Request, owner: TenantId | None) -> None:
    """Revoke the key in the address; a `Refusal` if it is the token of the request, or not a live one of its owner."""
    key = KeyId(request.path_params["key"])
    if key == token_of(request).id:
        raise Refusal(409, "A token cannot revoke itself: use another one")
    [was_live] = await keys.revoke([key], tenant=owner)
    if not was_live:
        raise not_found("live key")
    ring.forget()
