"""Templates: the words that a tenant writes once."""

from datetime import datetime

from carteiro.model.basics import TenantId, value

MOST_TEMPLATES = 1000  # types of one tenant, those that are deleted included
MOST_TEMPLATE_VERSIONS = 100  # of one type; messages carry their words, so none needs an older one


@value
class NewTemplate:
    """A template as a tenant writes it; each `define` makes a new version."""

    tenant: TenantId
    type: str
    subject: str
    html: str | None = None
    text: str | None = None
    retry_preset: str | None = None


@value
class Template:
    """One version of a template."""

    tenant: TenantId
    type: str
    version: int
    subject: str
    html: str | None
    text: str | None
    retry_preset: str | None
    created_at: datetime
    deleted_at: datetime | None = None  # the type was taken out of use while this was its newest


@value
class TemplateSummary:
    """One version of a template as lists show it, without its html and text: they may be long."""

    tenant: TenantId
    type: str
    version: int
    subject: str
    has_html: bool
    has_text: bool
    retry_preset: str | None
    created_at: datetime
    deleted_at: datetime | None = None


@value
class TooManyTemplates:
    """The tenant has as many templates in use as it may: delete one first."""
