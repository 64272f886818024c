"""Puts all ports of one database together: those written once for SQLite and Postgres, and its own."""

from carteiro.ports import Backend, Store, TableQueue, Upkeep
from carteiro.ports.joining import Joining
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.sql.alerts import SqlAlerts
from carteiro.stores.sql.audit import SqlAudit
from carteiro.stores.sql.automatic_redrives import SqlAutomaticRedrives
from carteiro.stores.sql.dead_letters import SqlDeadLetters
from carteiro.stores.sql.erasing import SqlErasing
from carteiro.stores.sql.failures import SqlFailures
from carteiro.stores.sql.inbox import SqlInbox
from carteiro.stores.sql.keeping import keep_jobs
from carteiro.stores.sql.keys import SqlKeys
from carteiro.stores.sql.ledger import Entries
from carteiro.stores.sql.marks import SqlMarks
from carteiro.stores.sql.options import SqlOptions
from carteiro.stores.sql.paired_ledger import SqlLedger, SqlLedgerDesk
from carteiro.stores.sql.rates import SqlRates
from carteiro.stores.sql.reading import SqlReading
from carteiro.stores.sql.recipients import SqlRecipients
from carteiro.stores.sql.redrives import SqlRedrives
from carteiro.stores.sql.reports import SqlReports
from carteiro.stores.sql.rollups import SqlRollups
from carteiro.stores.sql.session import Database, Wake
from carteiro.stores.sql.sign_ins import SqlSignIns
from carteiro.stores.sql.suppressions import SqlSuppressions
from carteiro.stores.sql.templates import SqlTemplates
from carteiro.stores.sql.tenants import SqlTenants
from carteiro.stores.sql.tracking import SqlTracking


async def set_up(  # noqa: PLR0913 - what a database has of its own
    db: Database,
    entries: Entries,
    ledger: SqlLedger,
    *,
    store: Store,
    upkeep: Upkeep,
    wake: Wake,
    options: SqlOptions,
    joining: Joining | None = None,
    table_queue: TableQueue | None = None,
) -> LedgerHalf:
    """Rebuild or delete the jobs if their place has changed; return all ports."""
    has_queue = options.has_queue
    await keep_jobs(db, here=has_queue)
    erasing = SqlErasing(db, store, has_queue=has_queue)
    backend = Backend(
        store=store,
        tenants=SqlTenants(db, wake, erasing, options.fairness),
        keys=SqlKeys(db),
        sign_ins=SqlSignIns(db),
        audit=SqlAudit(db),
        alerts=SqlAlerts(db),
        templates=SqlTemplates(db),
        recipients=SqlRecipients(db, erasing),
        suppressions=SqlSuppressions(db),
        tracking=SqlTracking(db, entries, wake),
        rates=SqlRates(db),
        rollups=SqlRollups(db),
        reports=SqlReports(db),
        failures=SqlFailures(db),
        dead_letters=SqlDeadLetters(db, wake, entries, has_queue=has_queue),
        redrives=SqlRedrives(db, wake, entries, has_queue=has_queue),
        automatic_redrives=SqlAutomaticRedrives(db),
        reading=SqlReading(db, has_queue=has_queue),
        upkeep=upkeep,
        inbox=SqlInbox(db),
        marks=SqlMarks(db),
        wake=wake,
        joining=joining,
        table_queue=table_queue,
    )
    return LedgerHalf(ledger, SqlLedgerDesk(db, erasing), backend)
