"""Templates: texts with variables, written once by a tenant."""

from datetime import datetime

from carteiro.model.basics import TenantId, value

MOST_TEMPLATES = 1000  # types of one tenant, including deleted ones
MOST_TEMPLATE_VERSIONS = 100  # of one type; messages contain the rendered text
_MOST_BYTES = 64 * 1024 * 1024


@value
class TemplateLimits:
    """Limits of one tenant's templates: types, versions of each, bytes of all."""

    types: int = MOST_TEMPLATES
    versions: int = MOST_TEMPLATE_VERSIONS
    bytes: int = _MOST_BYTES


USUAL_TEMPLATE_LIMITS = TemplateLimits()


@value
class NewTemplate:
    """A template as a tenant writes it; each `define` makes a new version."""

    tenant: TenantId
    type: str
    subject: str
    html: str | None = None
    text: str | None = None
    retry_preset: str | None = None
    one_click_unsubscribe: bool = False
    automatic_redrive: bool = True

    @property
    def size(self) -> int:
        """The number of bytes that are stored."""
        return sum(len(each.encode()) for each in (self.subject, self.html, self.text) if each)


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
    one_click_unsubscribe: bool
    automatic_redrive: bool
    created_at: datetime
    deleted_at: datetime | None = None  # the type was deleted while this was its newest version


@value
class TemplateSummary:
    """One version of a template as lists show it, without its html and text."""

    tenant: TenantId
    type: str
    version: int
    subject: str
    has_html: bool
    has_text: bool
    retry_preset: str | None
    one_click_unsubscribe: bool
    automatic_redrive: bool
    created_at: datetime
    deleted_at: datetime | None = None


@value
class TemplateKept:
    """Storage use of one type; its newest version is in use, unless it is deleted."""

    type: str
    is_deleted: bool
    bytes: int  # of all versions
    newest_bytes: int
