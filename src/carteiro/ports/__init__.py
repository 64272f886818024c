"""Interfaces of the adapters, as Protocols; ``Backend`` holds all those of one store."""

from carteiro.model import value
from carteiro.ports.alerts import Alerts
from carteiro.ports.audit import Audit
from carteiro.ports.automatic_redrives import AutomaticRedrives
from carteiro.ports.dead_letters import DeadLetters
from carteiro.ports.failures import Failures
from carteiro.ports.inbox import Inbox
from carteiro.ports.joining import Joining
from carteiro.ports.keys import Keys
from carteiro.ports.marks import Marks
from carteiro.ports.provider import Features, Handover, Parcel, Provider
from carteiro.ports.queue import KeptQueue
from carteiro.ports.rates import Rates
from carteiro.ports.reading import Reading
from carteiro.ports.recipients import Recipients
from carteiro.ports.redrives import Redrives
from carteiro.ports.reports import Reports
from carteiro.ports.rollups import Rollups
from carteiro.ports.sign_ins import SignIns
from carteiro.ports.store import Store
from carteiro.ports.suppressions import Suppressions
from carteiro.ports.table_queue import TableQueue
from carteiro.ports.templates import Templates
from carteiro.ports.tenants import Tenants
from carteiro.ports.tracking import Tracking
from carteiro.ports.upkeep import Upkeep
from carteiro.ports.wake import Wake


@value
class Backend:
    """The ports of one store, opened and closed together (`stores.open`)."""

    store: Store
    tenants: Tenants
    keys: Keys
    sign_ins: SignIns
    audit: Audit
    alerts: Alerts
    templates: Templates
    recipients: Recipients
    suppressions: Suppressions
    tracking: Tracking
    rates: Rates
    rollups: Rollups
    reports: Reports
    failures: Failures
    dead_letters: DeadLetters
    redrives: Redrives
    automatic_redrives: AutomaticRedrives
    reading: Reading
    upkeep: Upkeep
    inbox: Inbox
    marks: Marks
    wake: Wake
    joining: Joining | None = None  # None: the caller's transactions cannot be joined
    table_queue: TableQueue | None = None  # None: applications have no access by SQL
    queue: KeptQueue | None = None  # None: the store keeps its jobs itself
