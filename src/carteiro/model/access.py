"""Keys of tenants, tokens of administrators, and the audit rows of their changes."""

from datetime import datetime
from enum import StrEnum

from carteiro.model.basics import KeyId, Metadata, TenantId, value

MOST_LIVE_KEYS = 2  # an old and a new one: enough to rotate keys without downtime
MOST_LIVE_TOKENS = 100  # of all names together
MOST_ENDED_KEYS = 200  # of a tenant, and as many tokens: the newest; older ones are deleted
MOST_SIGN_INS = 20  # of one token in the console


class Role(StrEnum):
    """Role of an admin token; each may do all that the ones before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, least: "Role") -> bool:
        """True if this role may do what needs at least the other one."""
        order = list(Role)
        return order.index(self) >= order.index(least)


@value
class Key:
    """Metadata of a key; ``hint`` is its beginning, to recognize it.

    With a ``role`` it is an admin token, and ``tenant`` None means all tenants.
    """

    id: KeyId
    tenant: TenantId | None
    hint: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    name: str = ""
    role: Role | None = None


@value
class SignIn:
    """A person who is signed in to the console, until ``expires_at``.

    ``key`` is the live admin token that they used; None: the one-time link of this machine, as ``who``.
    """

    who: str
    expires_at: datetime
    key: Key | None


@value
class TooManyKeys:
    """The tenant, the name of the token, or all tokens together have the maximum number of ``live`` keys."""

    live: tuple[KeyId, ...]


@value
class NameTaken:
    """The live token ``holder`` has this name, and another role or tenant: audit rows could not tell them apart."""

    holder: KeyId


class Via(StrEnum):
    """The way by which a change came."""

    API = "api"
    CLI = "cli"
    CONSOLE = "console"
    LIBRARY = "library"
    SETTINGS = "settings"
    UPKEEP = "upkeep"


@value
class Actor:
    """The author of a change, and the address or host it comes from. ``key_id``: of the token or key, if any.

    ``is_own``: it is a tenant, by a key of its own.
    """

    via: Via
    who: str
    origin: str
    key_id: KeyId | None = None
    is_own: bool = False


@value
class AuditRow:
    """One change: who made it, what it was, and the fields that it changed, before and after."""

    id: str
    at: datetime
    via: Via
    who: str
    key_id: KeyId | None
    origin: str
    action: str
    kind: str
    object: str
    tenant: TenantId | None
    before: Metadata
    after: Metadata


@value
class AuditFilter:
    """A selection of audit rows; None does not restrict it.

    ``is_own``: not those of a former tenant of the same id.
    """

    who: str | None = None
    action: str | None = None
    kind: str | None = None
    object: str | None = None
    tenant: TenantId | None = None
    since: datetime | None = None
    is_own: bool = False
