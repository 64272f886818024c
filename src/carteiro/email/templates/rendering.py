"""Templates are checked when they are defined, and rendered when an e-mail is accepted."""

import asyncio
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import resources
from typing import Any, TypeVar

from carteiro.email.message import MAX_SUBJECT_CHARS, Email, EmailTemplate, is_blank, subject_fault
from carteiro.email.templates import language
from carteiro.email.templates.work import STEPS_AT_ONCE, Allowance, Work
from carteiro.email.unsubscribe import offer_fault
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import NewTemplate, Template, TenantId, value
from carteiro.policy.html import find_danger
from carteiro.policy.retry import PRESETS
from carteiro.policy.unsubscribe import OneClick
from carteiro.ports.templates import Templates
from carteiro.runtime.fair_thread import Turns

MAX_BODY_BYTES = 512 * 1024
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_MOST_SUBJECT_SOURCE = 2000
_VARIABLES = "template.variables"
_SPENT = "the templates of this request need too much work: send this e-mail in another request"

# One thread for all work that a tenant can make slow: tenants take turns in it, template by template, and
# the threads for name lookups and store reads stay free.
_RENDERER = Turns(ThreadPoolExecutor(max_workers=1, thread_name_prefix="carteiro-renderer"))
_T = TypeVar("_T")


@value
class Rendered:
    """The result of a template."""

    subject: str
    html: str | None
    text: str | None


# --- defining -----------------------------------------------------------------------------------


def check_template(
    template: NewTemplate,
    *,
    presets: Collection[str] = PRESETS,
    offer: OneClick | None = None,
) -> None:
    """Raise `InvalidMessage` on a template that cannot be defined; ``presets`` are the allowed names."""
    if faults := list(faults_of(template, presets=presets, offer=offer)):
        raise InvalidMessage(faults)


def faults_of(
    template: NewTemplate | Template,
    *,
    presets: Collection[str] = PRESETS,
    offer: OneClick | None = None,
) -> Iterator[FieldError]:
    """The faults of a template, field by field."""
    if not _TYPE.fullmatch(template.type):
        yield FieldError("type", "must be 1 to 100 letters, digits, '_', '-' or '.'")
    if is_blank(template.html) and is_blank(template.text):
        yield FieldError("html", "html or text is required", missing=True)
    if template.retry_preset is not None and template.retry_preset not in presets:
        yield FieldError("retryPreset", f"must be one of {', '.join(presets)}")
    if (
        template.one_click_unsubscribe
        and (fault := offer_fault(template.tenant, offer)) is not None
    ):
        yield FieldError("oneClickUnsubscribe", fault)
    if not 0 < len(template.subject) <= _MOST_SUBJECT_SOURCE:
        yield FieldError("subject", f"must have 1 to {_MOST_SUBJECT_SOURCE} characters")
    for field, source, escapes in _parts(template):
        if (fault := _source_fault(source, escapes=escapes)) is not None:
            yield FieldError(field, fault)


def _parts(template: NewTemplate | Template) -> Iterator[tuple[str, str, bool]]:
    yield "subject", template.subject, False
    if template.html is not None:
        yield "html", template.html, True
    if template.text is not None:
        yield "text", template.text, False


def _source_fault(source: str, *, escapes: bool) -> str | None:
    try:
        if "\0" in source or len(source.encode()) > language.MAX_SOURCE_CHARS:
            return f"must have at most {language.MAX_SOURCE_CHARS} bytes, and no U+0000"
        language.program(source, escapes=escapes)
        dangers = map(find_danger, language.outlines(source) if escapes else ())
        if (danger := next(filter(None, dangers), None)) is not None:
            return f"can never be sent, as it {danger}"
    except UnicodeEncodeError:
        return "is not valid Unicode"
    except language.TemplateFault as error:
        return str(error)
    return None


# --- rendering ----------------------------------------------------------------------------------


def render(
    template: NewTemplate | Template,
    variables: Mapping[str, Any],
    *,
    allowance: Allowance | None = None,
    work: Work | None = None,
) -> Rendered:
    """Render the template; `InvalidMessage` names all missing variables, or the fault.

    Its cost is subtracted from the allowance; if nothing is left, nothing is rendered.
    """
    work = work or Work()
    if allowance is not None and allowance.is_spent:
        raise InvalidMessage([FieldError("template", _SPENT)])
    try:
        words = language.readable(variables)
    except language.TemplateFault as error:
        raise InvalidMessage([FieldError(_VARIABLES, str(error))]) from None
    try:
        rendered = _rendered(template, words, work)
    finally:
        if allowance is not None:
            allowance.take(work.done)
    _judge(rendered)
    return rendered


def _rendered(template: NewTemplate | Template, words: language.Readable, work: Work) -> Rendered:
    made: dict[str, str] = {}
    faults: dict[str, FieldError] = {}
    for part, each in _programs(template).items():
        most = MAX_SUBJECT_CHARS * 2 if part == "subject" else MAX_BODY_BYTES
        try:
            made[part] = each.run(words, most_chars=most, work=work)
        except language.VariablesMissing as error:
            for path in error.paths:
                field = f"{_VARIABLES}.{path}"
                faults[field] = FieldError(field, "is required")
        except language.TemplateFault as error:
            faults[part] = FieldError(_VARIABLES, f"{part}: {error}")
    if faults:
        raise InvalidMessage(list(faults.values()))
    return Rendered(made["subject"].strip(), made.get("html"), made.get("text"))


def _programs(template: NewTemplate | Template) -> dict[str, language.Program]:
    """The parsed parts; one that was allowed earlier and is forbidden now is reported as a fault."""
    part = ""
    programs: dict[str, language.Program] = {}
    try:
        for part, source, escapes in _parts(template):
            programs[part] = language.program(source, escapes=escapes)
    except language.TemplateFault as error:
        raise InvalidMessage([FieldError("template", f"{part}: {error}")]) from None
    return programs


def _judge(rendered: Rendered) -> None:
    faults = []
    if (fault := subject_fault(rendered.subject)) is not None:
        faults.append(FieldError(_VARIABLES, f"subject: {fault}"))
    for part, body in (("html", rendered.html), ("text", rendered.text)):
        if body is not None and len(body.encode()) > MAX_BODY_BYTES:
            faults.append(
                FieldError(_VARIABLES, f"{part}: must have at most {MAX_BODY_BYTES} bytes")
            )
    if is_blank(rendered.html) and is_blank(rendered.text):
        faults.append(FieldError(_VARIABLES, "make html and text empty"))
    if faults:
        raise InvalidMessage(faults)


async def off_the_loop(work: Callable[[], _T], *, tenant: TenantId) -> _T:
    """Parse or render outside the event loop, when it is the tenant's turn."""
    return await _RENDERER.take(tenant, work)


def _rendered_at_once(
    template: Template, variables: Mapping[str, Any], allowance: Allowance | None
) -> Rendered | None:
    """Render at once if that is faster than starting a thread; None if it is not."""
    if not all(
        language.is_read(source, escapes=escapes) for _, source, escapes in _parts(template)
    ):
        return None
    work = Work(STEPS_AT_ONCE)
    try:
        return render(template, variables, allowance=allowance, work=work)
    except InvalidMessage:
        if work.is_too_much:
            return None
        raise


async def render_email(
    email: Email, *, tenant: TenantId, templates: Templates, allowance: Allowance | None = None
) -> Email:
    """Render the template of an e-mail and record its version; an e-mail without a template is returned as is.

    Later changes of the template have no effect on it. The e-mails of one request share an allowance;
    once it is used up, the rest is refused.
    """
    if email.template is None or email.template.version is not None:
        return email
    template = await templates.find(tenant, email.template.type)
    if template is None:
        raise InvalidMessage([FieldError("template.type", "there is no such template")])
    variables = email.template.variables
    await asyncio.sleep(0)  # let other tasks run between the e-mails of one request
    rendered = _rendered_at_once(template, variables, allowance)
    if rendered is None:
        rendered = await off_the_loop(
            partial(render, template, variables, allowance=allowance), tenant=tenant
        )
    return email.model_copy(
        update={
            "subject": rendered.subject,
            "html": rendered.html,
            "text": rendered.text,
            "template": _pinned(email, template),
        }
    )


def _pinned(email: Email, template: Template) -> EmailTemplate:
    """The rendered version; for the table queue also the variables, which it shows."""
    pinned: dict[str, Any] = {"version": template.version}
    if template.one_click_unsubscribe:
        pinned["one_click"] = True
    named = email.template
    if email.max_retries is None or named is None:
        named = EmailTemplate(type=template.type)
    return named.model_copy(update=pinned)


# --- samples ------------------------------------------------------------------------------------


def sample_templates(tenant: TenantId) -> list[NewTemplate]:
    """The sample templates, for a tenant to define."""
    return [
        NewTemplate(tenant=tenant, type=name, **tomllib.loads(text)) for name, text in _samples()
    ]


def _samples() -> Iterator[tuple[str, str]]:
    folder = resources.files("carteiro") / "samples"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        name, dot, kind = file.name.rpartition(".")
        if dot and kind == "toml":
            yield name, file.read_text(encoding="utf-8")
