"""Templates that tests write, and how lists show them."""

from carteiro.model import NewTemplate, Template, TemplateSummary, TenantId
from carteiro.ports import Backend
from support.builders import ACME


async def defined(
    backend: Backend,
    type: str = "welcome",
    *,
    tenant: TenantId = ACME,
    subject: str = "Oi",
    html: str | None = "<p>Oi</p>",
    text: str | None = None,
) -> Template:
    """The next version of a template."""
    template = await backend.templates.define(NewTemplate(tenant, type, subject, html, text))
    assert isinstance(template, Template)
    return template


def summary_of(template: Template) -> TemplateSummary:
    """The fields of a template in lists."""
    return TemplateSummary(
        tenant=template.tenant,
        type=template.type,
        version=template.version,
        subject=template.subject,
        has_html=template.html is not None,
        has_text=template.text is not None,
        retry_preset=template.retry_preset,
        one_click_unsubscribe=template.one_click_unsubscribe,
        automatic_redrive=template.automatic_redrive,
        created_at=template.created_at,
        deleted_at=template.deleted_at,
    )
