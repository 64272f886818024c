"""As `support.crowded`, on Postgres: 100,000 rows in every table that grows, and parameters for every statement."""

import re
from collections.abc import Callable
from typing import Any

from carteiro.stores.statements import numbered, statements_of
from support.crowded import ITEMS, NOW, ROWS, TINY_ROWS

# Not `leased`: it has a row for each tenant of a claim in flight.
GROWING = frozenset(
    {
        "audit",
        "dead_letters",
        "delayed",
        "entries",
        "events",
        "failure_counts",
        "idempotency_keys",
        "inbox",
        "message_tags",
        "messages",
        "queue_rows",
        "ready",
        "recipient_records",
        "suppressions",
        "unfinished",
    }
)

_FILL = """
CREATE TEMP TABLE rows AS
SELECT
    n::bigint,
    '00000000-0000-7000-8000-' || lpad((CASE WHEN n > $1 THEN 990000 + n - $1 ELSE n END)::text, 12, '0') AS id,
    n % 2 = 1 AS odd,
    $3 - CASE WHEN n > $1 THEN n - $1 ELSE n END / 2 AS at, n > $1 AS is_tiny,
    CASE WHEN n > $1 THEN 'tiny' WHEN n % 1000 > 0 THEN 'big' ELSE 'small-' || (n / 1000) END AS tenant,
    CASE WHEN n % 3 > 0 OR n > $1 THEN 'email:send' ELSE 'task' END AS kind,
    CASE WHEN n % 2 = 1 OR n > $1 THEN 'ana@example.com' ELSE lpad(n::text, 6, '0') || '@example.com' END AS address,
    CASE WHEN n % 2 = 1 OR n > $1 THEN 'name-1' ELSE 'name-' || lpad(n::text, 6, '0') END AS name,
    '{"code":"550","category":"PERMANENT_ERROR","retryable":false,"scope":"message","reason":"no","rule":""}'::json
        AS failure
FROM generate_series(1, $1 + $2) AS n;

INSERT INTO carteiro.tenants (id, name, stride, paused, created_at) SELECT DISTINCT tenant, '', 1, false, 0 FROM rows;
INSERT INTO carteiro.seats (kind, tenant, wake_at, jobs)
SELECT kind, tenant, CASE WHEN bool_or(odd) THEN NULL ELSE min(at) END, count(*) FROM rows GROUP BY kind, tenant;
INSERT INTO carteiro.ring_clock (kind) SELECT DISTINCT kind FROM rows;
INSERT INTO carteiro.recipient_records (id, tenant, email, external_id, cpf_cnpj_hash, created_at, deleted_at)
SELECT
    id, tenant, address, CASE WHEN n % 1000 = 1 OR is_tiny THEN 'name-1' ELSE id END, id, at,
    CASE WHEN odd THEN at END
FROM rows;
INSERT INTO carteiro.messages (
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, external_id, recipient_id, to_address, tags,
    due_at, created_at, content
)
SELECT
    n, id, tenant, kind, true, 'at_least_once', 5, 86400000, 'r', name, CASE WHEN n % 4 > 0 THEN id END, address,
    '["tag-1"]', at, at, '{}'
FROM rows;
INSERT INTO carteiro.entries (
    message_no, state, due_at, expires_at, holder, provider_message_id, failure, finished_at, tenant, is_email,
    created_at, timeline
)
SELECT
    n, (ARRAY['ENQUEUED', 'SENT', 'RETRY_SCHEDULED', 'FAILED'])[n % 4 + 1], at, at + 86400000, 'claim-1',
    CASE WHEN n % 4 = 1 OR is_tiny THEN name END, CASE WHEN n % 4 > 1 THEN failure END, CASE WHEN odd THEN at END,
    tenant, kind = 'email:send', at, format('["RECEIVED",%s,{}],', at)
FROM rows;
INSERT INTO carteiro.unfinished (expires_at, message_no) SELECT at + 86400000, n FROM rows WHERE NOT odd;
INSERT INTO carteiro.events (message_no, position, type, metadata, created_at)
SELECT n, 1, 'OPENED', '{}', at FROM rows;
INSERT INTO carteiro.dead_letters (
    message_id, message_no, tenant, kind, reason, code, category, failure, failed_attempts, failed_at, enqueued_at,
    moved_at, ttl_ms, failure_group, said
)
SELECT
    id, n, tenant, kind, 'reason-1', '550', 'PERMANENT_ERROR', failure, 1, at, at, at, 86400000, 'group-1',
    carteiro.said('550', failure, address)
FROM rows;
INSERT INTO carteiro.ready (tenant, kind, rank, id, message_no, claims)
SELECT tenant, kind, carteiro.rank(5, at), id, n, (n % 1000 = 0)::integer FROM rows;
INSERT INTO carteiro.delayed (message_no, id, kind, tenant, rank, parked_until, claims)
SELECT n, id, kind, tenant, carteiro.rank(5, at), at + 60000, (n % 1000 = 0)::integer FROM rows;
INSERT INTO carteiro.leased (claim_id, tenant, kind, parked_until, claims, numbers)
SELECT 'claim-1', tenant, kind, at + 60000, 1, ARRAY[n] FROM rows WHERE n % 1000 = 0;
INSERT INTO carteiro.claims (id) VALUES ('claim-1');
INSERT INTO carteiro.message_tags (tenant, tag, created_at, message_no) SELECT tenant, 'tag-1', at, n FROM rows;
INSERT INTO carteiro.idempotency_keys (tenant, key, digest, message_id, request_id, created_at)
SELECT tenant, 'key-' || id, '', id, 'r', at FROM rows;
INSERT INTO carteiro.inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT id, tenant, address, '', '{}', name, at FROM rows;
INSERT INTO carteiro.suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT tenant, 'key-' || id, 'reason-1', address, at, at + 60000, true, '[]' FROM rows;
INSERT INTO carteiro.queue_rows (id, message_no, tenant, max_retries)
SELECT md5(id)::uuid, n, tenant, 3 FROM rows;
INSERT INTO carteiro.audit (id, at, via, who, origin, action, kind, object, tenant, before, after)
SELECT id, at, 'api', CASE WHEN is_tiny THEN 'tiny' ELSE 'ana' END, '', 'set', 'email:send', tenant, tenant, '{}', '{}'
FROM rows;
INSERT INTO carteiro.failure_groups
SELECT id, 'sandbox', 'rule', '', 'no', '550', 'PERMANENT_ERROR', 'message', 'open', at, at, at, NULL, 1, 1
FROM rows WHERE n <= 1000;
INSERT INTO carteiro.failure_counts
SELECT g.id, $3 - r.n / 1000 * 3600000, 'big', 1, 1, r.at, r.at, '[]', 0, ''
FROM rows AS r JOIN rows AS g ON g.n = r.n % 1000 + 1
UNION ALL
SELECT id, 0, 'big', 100, 100, at, at, '[]', n % 300, '[{},0]' FROM rows WHERE n <= 1000
UNION ALL
SELECT id, 0, '', 100, 100, at, at, '[]', n % 300, '[{},0]' FROM rows WHERE n <= 1000;
INSERT INTO carteiro.templates (tenant, type, version, created_at, subject)
SELECT 'big', 'type-' || (n / 10), n % 10, at, '' FROM rows WHERE n < 1000;
SELECT setval('carteiro.message_no', $1 + $2 + 1);
DROP TABLE rows;
"""


async def crowd(connection: Any, rows: int = ROWS) -> None:
    """Fill a database that has only the schema."""
    values = {"$1": str(rows), "$2": str(TINY_ROWS), "$3": str(NOW)}
    fill = re.sub(r"\$[123]", lambda found: values[found[0]], _FILL)
    await connection.execute(f"SET synchronous_commit = off; SET work_mem = '64MB'; {fill}")


def operations() -> list[str]:
    """Every statement of the store."""
    return sorted(statements_of("carteiro.stores.postgres"))


# --- parameters -------------------------------------------------------------------------------

_Sample = Callable[[int], object]

# By their names in the first lines of the statements, the first that fits; then by their type.
_BY_WORD: list[tuple[str, _Sample]] = [
    (
        r"category|is.redriven|text, in|^text$|version|then|if it is not the server's",
        lambda _: None,
    ),
    (r"external id of the recipient|recipient_external_id", lambda _: None),
    (r"in one text", lambda n: f"{{{n}}}"),
    (r"^who$", lambda _: "ana"),
    (r"^action$", lambda _: "set"),
    (r"tenant|^object$", lambda _: "big"),
    (r"kind", lambda _: "email:send"),
    (r"email", lambda _: "000200@example.com"),
    (r"\bto\b", lambda _: "ana@example.com"),
    (r"external.id|provider's id", lambda _: "name-1"),
    (r"state", lambda _: "SENT"),
    (r"reason", lambda _: "reason-1"),
    (r"code", lambda _: "550"),
    (r"^group$", lambda _: "group-1"),
    (r"\btag", lambda _: "tag-1"),
    (r"\bkeys?\b", lambda n: f"key-{n:06}"),
    (r"type", lambda n: f"type-{n % 100}"),
    (r"claim", lambda _: "claim-1"),
    (r"limit|most|how many|counts?\b", lambda _: 100),
    (r"longest", lambda _: 3_600_000),
    (r"edge", str),  # a number as text
    (r"since|after|expires_at", lambda _: 0),
    (r"\bnow\b", lambda _: NOW - ROWS // 4),
    (r"before|the one|the place|\bat\b|time|until", lambda _: NOW),
]
_BY_TYPE: dict[str, _Sample] = {
    "text": lambda n: f"00000000-0000-7000-8000-{n:012}",
    "uuid": lambda n: f"{n:032}",
    "json": lambda _: '{"code": "550"}',
    "bool": lambda _: True,
    "int8": lambda n: n,
    "int4": lambda _: 1,
    "int2": lambda _: 1,
    "float8": lambda _: 1.0,
    "name": lambda _: "name",
}

_LISTS = {"text": "text", "integer": "int4", "bigint": "int8"}  # as casts write them


def parameters(operation: str, types: list[str]) -> list[object]:
    """A value for each parameter, of arrays `ITEMS`; ``types`` as the server knows them (``text``, ``int8[]``)."""
    statement, names = numbered(statements_of("carteiro.stores.postgres")[operation])
    head = " ".join(line[2:].strip() for line in statement.splitlines() if line.startswith("--"))
    if names:
        lists = {int(n): _LISTS[of] for n, of in re.findall(r"\$(\d+)::text::(\w+)\[\]", statement)}
        return [
            _literal(_named(name, head), lists[number])
            if number in lists
            else _value(_named(name, head), each)
            for number, (name, each) in enumerate(zip(names, types, strict=True), start=1)
        ]
    words = re.findall(r"\$(\d+)([^$]*)", head)
    said = {int(number): text for number, text in words}
    for number in sorted(said, reverse=True):  # "$2, $3 the one": both are
        if said[number].strip(" ,") == "" and number + 1 in said:
            said[number] = said[number + 1]
    return [_value(said.get(place, ""), each) for place, each in enumerate(types, start=1)]


def _literal(said: str, type_name: str) -> str:
    """A list that is sent as one text."""
    found = _value(said, f"{type_name}[]")
    assert isinstance(found, list)
    return f"{{{','.join(map(str, found))}}}"


def _named(name: str, head: str) -> str:
    """The name of a parameter, or the shape of its items as in the first lines (``:ids = [id, …]``)."""
    if listed := re.search(rf":{name} = \[([^\[\]]*), …\]", head):
        return listed[1]
    rows, _, column = name.rpartition("_")
    if rows and (listed := re.search(rf":{rows} = \[\[(.*?)\], …\]", head)):
        return listed[1].split(", ")[int(column)]
    return name


def _value(said: str, type_name: str) -> object:
    one = type_name.removesuffix("[]")
    if one == type_name:
        return _sample(said, one)(ROWS // 3)
    return [_sample(said, one)(n) for n in range(1, ROWS, ROWS // ITEMS)]


def _sample(said: str, type_name: str) -> _Sample:
    by_type = _BY_TYPE[type_name]
    for word, sample in _BY_WORD:
        if re.search(word, said):
            value = sample(1)
            if value is None or type(value) is type(by_type(1)):
                return sample
    return by_type
