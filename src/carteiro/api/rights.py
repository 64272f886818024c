"""Rights of the roles: the one table of them, and the one check of a request against it."""

from collections.abc import Mapping

from starlette.requests import Request

from carteiro.api.refusal import Refusal, not_found
from carteiro.model import Key, Role, value


@value
class Right:
    """The least role that may use an endpoint; ``scoped``: tokens of one tenant may use it, for that tenant."""

    least: Role
    scoped: bool = False


_SEE, _SEE_OWN = Right(Role.VIEWER), Right(Role.VIEWER, scoped=True)
_RUN = Right(Role.OPERATOR)
_RUN_OWN = Right(Role.OPERATOR, scoped=True)
_DEFINE, _DEFINE_OWN = Right(Role.ADMIN), Right(Role.ADMIN, scoped=True)
_TENANT = "/admin/v1/tenants/{tenant}"
_LETTERS = "/admin/v1/dead-letters"
_FAILURES = "/admin/v1/failures"
_REDRIVES = "/admin/v1/redrives"

# An endpoint of administrators without a row cannot be offered. Tenants have keys, no roles: theirs are not here.
RIGHTS: Mapping[str, Right] = {
    "GET /admin/v1/tenants": _SEE,
    f"GET {_TENANT}": _SEE_OWN,
    f"PUT {_TENANT}": _DEFINE,  # weights and limits of a tenant are not its own to change
    f"PATCH {_TENANT}": _DEFINE,
    f"POST {_TENANT}/disable": _DEFINE,
    f"POST {_TENANT}/enable": _DEFINE,
    f"POST {_TENANT}/pause": _RUN_OWN,
    f"POST {_TENANT}/resume": _RUN_OWN,
    f"POST {_TENANT}/erase": _DEFINE,
    f"GET {_TENANT}/keys": _SEE_OWN,
    f"POST {_TENANT}/keys": _DEFINE_OWN,
    f"DELETE {_TENANT}/keys/{{key}}": _DEFINE_OWN,
    "GET /admin/v1/keys": _SEE,
    "POST /admin/v1/keys": _DEFINE,
    "DELETE /admin/v1/keys/{key}": _DEFINE,
    f"GET {_TENANT}/templates": _SEE_OWN,
    f"GET {_TENANT}/templates/{{type}}": _SEE_OWN,
    f"GET {_TENANT}/templates/{{type}}/versions": _SEE_OWN,
    f"POST {_TENANT}/templates/{{type}}/preview": _SEE_OWN,
    f"PUT {_TENANT}/templates/{{type}}": _DEFINE_OWN,
    f"DELETE {_TENANT}/templates/{{type}}": _DEFINE_OWN,
    f"GET {_TENANT}/recipients": _SEE_OWN,
    f"GET {_TENANT}/recipients/{{id}}": _SEE_OWN,
    f"DELETE {_TENANT}/recipients/{{id}}": _RUN_OWN,
    f"POST {_TENANT}/recipients/{{id}}/erase": _DEFINE_OWN,
    f"GET {_TENANT}/suppressions": _SEE_OWN,
    f"PUT {_TENANT}/suppressions": _RUN_OWN,
    f"DELETE {_TENANT}/suppressions": _RUN_OWN,
    f"GET {_TENANT}/inbox": _SEE_OWN,
    f"GET {_TENANT}/inbox/{{id}}": _SEE_OWN,
    f"DELETE {_TENANT}/inbox": _RUN_OWN,
    f"DELETE {_TENANT}/inbox/{{id}}": _RUN_OWN,
    "GET /admin/v1/messages": _SEE_OWN,
    "GET /admin/v1/messages/{id}": _SEE_OWN,
    "GET /admin/v1/messages/{id}/explain": _SEE_OWN,
    "POST /admin/v1/messages/{id}/cancel": _RUN_OWN,
    f"GET {_LETTERS}": _SEE_OWN,
    f"GET {_LETTERS}/groups": _SEE_OWN,
    f"GET {_LETTERS}/export": _SEE_OWN,
    f"GET {_LETTERS}/{{id}}": _SEE_OWN,
    f"POST {_LETTERS}/{{id}}/redrive": _RUN_OWN,
    f"POST {_LETTERS}/{{id}}/edit": _RUN_OWN,
    f"POST {_LETTERS}/redrive": _RUN_OWN,
    f"POST {_LETTERS}/import": _DEFINE,
    f"POST {_LETTERS}/purge": _DEFINE_OWN,
    f"GET {_FAILURES}": _SEE_OWN,
    f"GET {_FAILURES}/{{id}}": _SEE_OWN,
    f"POST {_FAILURES}/{{id}}/acknowledge": _RUN,  # the cause of all tenants
    f"POST {_FAILURES}/{{id}}/resolve": _RUN,
    f"POST {_FAILURES}/{{id}}/ignore": _RUN,
    f"POST {_REDRIVES}/plan": _SEE_OWN,
    f"POST {_REDRIVES}": _RUN_OWN,
    f"GET {_REDRIVES}": _SEE_OWN,
    f"GET {_REDRIVES}/{{id}}": _SEE_OWN,
    f"POST {_REDRIVES}/{{id}}/pause": _RUN_OWN,
    f"POST {_REDRIVES}/{{id}}/resume": _RUN_OWN,
    f"POST {_REDRIVES}/{{id}}/cancel": _RUN_OWN,
    "GET /admin/v1/standings": _SEE,
    "GET /admin/v1/fairness": _SEE,
    "PUT /admin/v1/fairness": _DEFINE,
    "DELETE /admin/v1/fairness": _DEFINE,
    "GET /admin/v1/alerts": _SEE_OWN,
    "GET /admin/v1/alerts/{name}": _SEE_OWN,
    "POST /admin/v1/alerts/{name}/acknowledge": _RUN,
    "POST /admin/v1/alerts/test": _RUN,
    "GET /admin/v1/notices": _SEE,
    "GET /admin/v1/silences": _SEE,
    "POST /admin/v1/silences": _RUN,
    "DELETE /admin/v1/silences/{id}": _RUN,
    "GET /admin/v1/audit": _SEE_OWN,
    "GET /admin/v1/kpis": _SEE_OWN,
    "GET /admin/v1/stats": _SEE,
    "GET /metrics": _SEE,
}


def check_right(right: Right, token: Key, request: Request) -> None:
    """Raise a `Refusal` if the token may not use the endpoint; another tenant's things are not found."""
    if token.tenant is not None:
        if not right.scoped:
            text = (
                f"This token is only for tenant {token.tenant!r}: a token for all tenants is needed"
            )
            raise Refusal(403, text)
        if request.path_params.get("tenant", token.tenant) != token.tenant:
            raise not_found("tenant")
    if token.role is None or not token.role.covers(right.least):
        text = f"The role of this token is {token.role}: at least {right.least} is needed"
        raise Refusal(403, text)
