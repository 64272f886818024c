"""A SQLite database with 100,000 rows in every table that grows, and sample parameters for every statement.

One tenant, ``big``, has nearly all rows, and half of them have one address, one external id and one tag:
a statement that reads more than it must reads a lot. ``tiny`` has three messages under the same names.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from carteiro.stores.sqlite.opening import migrate
from carteiro.stores.statements import statements_of

ROWS = 100_000
ITEMS = 1_000  # of a submitted list
TINY_ROWS = 3
NOW = 1_800_000_000_000
FAR = 1 << 62

# Their number of rows depends on the number of messages and of recipients.
GROWING = frozenset(
    {
        "audit",
        "contents",
        "dead_letters",
        "delayed",
        "entries",
        "events",
        "failure_counts",
        "idempotency_keys",
        "inbox",
        "message_tags",
        "messages",
        "ready",
        "recipient_records",
        "suppressions",
        "unfinished",
    }
)

_FILL = """
CREATE TEMP TABLE rows AS
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows + :tiny)
SELECT
    n, iif(n > :rows, 'tiny-' || (n - :rows), printf('%06d', n)) AS id, n % 2 AS odd,
    :now - iif(n > :rows, n - :rows, n) / 2 AS at,
    CASE WHEN n > :rows THEN 'tiny' WHEN n % 1000 THEN 'big' ELSE 'small-' || (n / 1000) END AS tenant,
    CASE WHEN n % 3 OR n > :rows THEN 'email:send' ELSE 'task' END AS kind,
    iif(n % 2 OR n > :rows, 'ana@example.com', printf('%06d@example.com', n)) AS address,
    iif(n % 2 OR n > :rows, 'name-1', printf('name-%06d', n)) AS name,
    '{"code":"550","category":"PERMANENT_ERROR","retryable":false,"scope":"message","reason":"no","rule":""}' AS failure
FROM numbers;

INSERT INTO tenants (id, name, stride, paused, created_at)
SELECT DISTINCT tenant, '', 1, 0, 0 FROM rows;
INSERT INTO seats (kind, tenant, wake_at, jobs)
SELECT kind, tenant, iif(odd, NULL, at), count(*) FROM rows GROUP BY kind, tenant;
INSERT INTO recipient_records (id, tenant, email, external_id, cpf_cnpj_hash, created_at, deleted_at)
SELECT id, tenant, address, iif(n % 1000 = 1, 'name-1', iif(n > :rows, name, id)), id, at, iif(odd, at, NULL) FROM rows;
INSERT INTO messages (
    no, id, tenant, kind, declares, delivery, priority, ttl_ms, request_id, external_id, recipient_id, to_address,
    tags, due_at, created_at
)
SELECT
    n, id, tenant, kind, 1, 'at_least_once', 5, 86400000, 'r', name, iif(n % 4, id, NULL), address, '["tag-1"]', at, at
FROM rows;
INSERT INTO entries (
    message_no, tenant, is_email, created_at, state, due_at, expires_at, holder, provider_message_id, failure,
    finished_at, timeline
)
SELECT
    n, tenant, kind = 'email:send', at,
    CASE n % 4 WHEN 0 THEN 'ENQUEUED' WHEN 1 THEN 'SENT' WHEN 2 THEN 'RETRY_SCHEDULED' ELSE 'FAILED' END,
    at, at + 86400000, 'claim-1', iif(n % 4 = 1 OR n > :rows, name, NULL), iif(n % 4 > 1, failure, NULL),
    iif(odd, at, NULL), '["RECEIVED",1,{}],'
FROM rows;
INSERT INTO unfinished (expires_at, message_no) SELECT at + 86400000, n FROM rows WHERE NOT odd;
INSERT INTO contents (message_no, content) SELECT n, '{}' FROM rows;
INSERT INTO events (message_no, position, type, metadata, created_at) SELECT n, 1, 'OPENED', '{}', at FROM rows;
INSERT INTO dead_letters (
    message_id, tenant, kind, reason, failure, failed_attempts, failed_at, enqueued_at, moved_at, ttl_ms,
    failure_group
)
SELECT id, tenant, kind, 'reason-1', failure, 1, at, at, at, 86400000, 'group-1' FROM rows;
INSERT INTO ready (seat, priority, due_at, id, message_no, claims)
SELECT s.no, 5, r.at, r.id, r.n, r.n % 1000 = 0
FROM rows AS r CROSS JOIN seats AS s ON s.kind = r.kind AND s.tenant = r.tenant;
INSERT INTO delayed (message_no, seat, until, id, claims)
SELECT r.n, s.no, r.at + 60000, r.id, r.n % 1000 = 0
FROM rows AS r CROSS JOIN seats AS s ON s.kind = r.kind AND s.tenant = r.tenant;
INSERT INTO leased (message_no, seat, claim, until, claims)
SELECT r.n, s.no, 'claim-1', r.at + 60000, 1
FROM rows AS r CROSS JOIN seats AS s ON s.kind = r.kind AND s.tenant = r.tenant
WHERE r.n % 1000 = 0;
INSERT INTO message_tags (tenant, tag, created_at, message_no) SELECT tenant, 'tag-1', at, n FROM rows;
INSERT INTO idempotency_keys (tenant, key, digest, message_id, request_id, created_at)
SELECT tenant, 'key-' || id, '', id, 'r', at FROM rows;
INSERT INTO inbox (message_id, tenant, to_address, subject, content, provider_message_id, created_at)
SELECT id, tenant, address, '', '{}', name, at FROM rows;
INSERT INTO suppressions (tenant, key, reason, address, created_at, expires_at, is_active, bounces)
SELECT tenant, 'key-' || id, 'reason-1', address, at, at + 60000, 1, '[]' FROM rows;
INSERT INTO audit (id, at, via, who, origin, action, kind, object, tenant, before, after)
SELECT id, at, 'api', iif(n > :rows, 'tiny', 'ana'), '', 'set', 'email:send', tenant, tenant, '{}', '{}'
FROM rows;
INSERT INTO failure_groups
SELECT id, 'sandbox', 'rule', '', 'no', '550', 'PERMANENT_ERROR', 'message', 'open', at, at, at, NULL, 1, 1
FROM rows WHERE n <= 1000;
INSERT INTO failure_counts
SELECT printf('%06d', n % 1000 + 1), :now - n / 1000 * 3600000, 'big', 1, 1, at, at, '[]', 0, '' FROM rows
UNION ALL
SELECT printf('%06d', n), 0, 'big', 100, 100, at, at, '[]', n % 300, '[{},0]' FROM rows WHERE n <= 1000
UNION ALL
SELECT printf('%06d', n), 0, '', 100, 100, at, at, '[]', n % 300, '[{},0]' FROM rows WHERE n <= 1000;
INSERT INTO templates (tenant, type, version, created_at, subject)
SELECT 'big', 'type-' || (n / 10), n % 10, at, '' FROM rows WHERE n < 1000;
DROP TABLE rows;
"""


def crowded(rows: int = ROWS) -> sqlite3.Connection:
    """The database, in memory."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, Path(":memory:"))
    values = {":rows": str(rows), ":tiny": str(TINY_ROWS), ":now": str(NOW)}
    fill = re.sub(r":(rows|tiny|now)\b", lambda found: values[found[0]], _FILL)
    db.executescript(f"BEGIN; {fill} COMMIT;")
    return db


def operations() -> list[str]:
    """Every statement of the store."""
    return sorted(statements_of("carteiro.stores.sqlite"))


# --- parameters -------------------------------------------------------------------------------

_Sample = Callable[[int], object]


def _id(n: int) -> str:
    return f"{n:06}"


# By the names in the first lines of the statements; ``n`` is the number of a row.
_BY_NAME: Mapping[str, _Sample] = {
    "id": _id,
    "message id": _id,
    "group id": _id,
    "recipient id": _id,
    "message": _id,
    "recipient": _id,
    "recipient_id": _id,
    "before_id": lambda _: "999999",
    "message no": lambda n: n,
    "number": lambda n: n,
    "key": lambda n: f"key-{n:06}",
    "tenant": lambda _: "big",
    "kind": lambda _: "email:send",
    "to": lambda _: "ana@example.com",
    "email": lambda _: "000200@example.com",
    "external_id": lambda _: "name-1",
    "provider_id": lambda _: "name-1",
    "cpf_cnpj_hash": lambda _: "name-1",
    "recipient_external_id": lambda _: None,
    "state": lambda _: "SENT",
    "tag": lambda _: "tag-1",
    "type": lambda n: f"type-{n % 100}",
    "version": lambda _: None,
    "reason": lambda _: "reason-1",
    "code": lambda _: "550",
    "category": lambda _: None,
    "group": lambda _: "group-1",
    "is_redriven": lambda _: None,
    "text": lambda _: None,
    "by": lambda _: "code",
    "claim": lambda _: "claim-1",
    "holder": lambda _: "claim-1",
    "timeline": lambda _: "",
    "until": lambda n: NOW - n // 2,
    "priority": lambda _: 5,
    "due_at": lambda n: NOW - n // 2,
    "failure": lambda _: '{"code": "550"}',
    "content": lambda _: "{}",
    "limit": lambda _: 100,
    "most": lambda _: 100,
    "now": lambda _: NOW - ROWS // 4,
    "who": lambda _: "ana",
    "action": lambda _: "set",
    "object": lambda _: "big",
    "longest": lambda _: 3_600_000,
    "at": lambda _: NOW,
    "no": lambda _: ROWS,
    "place": lambda _: "z",
    "before_at": lambda _: NOW,
    "before": lambda _: NOW,
    "moved_after": lambda _: 0,
    "since": lambda _: 0,
    "expires_at": lambda _: 0,
    "after": lambda _: 0,
    "first": lambda _: 2 * ROWS,
}
_WORDS = re.compile(r"(?<![:\w]):([a-z_]+)")


def parameters(statement: str) -> dict[str, object]:
    """A value for each parameter: of lists `ITEMS`, shaped as the statement's first lines say (``:ids = [id, …]``)."""
    lines = statement.splitlines()
    head = _head(statement)
    body = re.sub(r"'[^']*'", "''", "\n".join(line for line in lines if not line.startswith("--")))
    lists = dict(re.findall(r":(\w+) = (\[\[.*?\], …\]|\[[^\[\]]*\])", head))
    return {
        name: _listed(lists[name]) if name in lists else _sample(name)(ROWS // 3)
        for name in _WORDS.findall(body)
    }


def row(statement: str) -> list[object]:
    """The parameters of a statement for one row, named in its first lines (``? = message no, …``); usually none."""
    names = re.findall(r"\? = (.*)", _head(statement))
    return [_sample(name.strip())(ROWS // 3) for each in names for name in each.split(",")]


def _head(statement: str) -> str:
    lines = statement.splitlines()
    return " ".join(line[2:].strip() for line in lines if line.startswith("--"))


def _sample(name: str) -> _Sample:
    return _BY_NAME.get(name, lambda _: 1)


def _listed(shape: str) -> str:
    fields = [each.strip() for each in shape.strip("[], …").split(",")]
    rows: list[Any] = [
        [_sample(field)(n) for field in fields] for n in range(1, ROWS, ROWS // ITEMS)
    ]
    if "…" not in shape:
        return json.dumps(rows[0])
    return json.dumps(rows if shape.startswith("[[") else [row[0] for row in rows])
