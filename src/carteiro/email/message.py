"""An e-mail: its fields, their limits, and its JSON form.

`read_email` and `make_email` check everything that needs neither HTML parsing nor the ledger.
`restore_email` reads stored e-mails: it checks the shape again, and leaves addresses, subject and
body to the validations, which have their own error codes.
"""

import binascii
import math
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

import orjson
import pydantic
from pydantic import Field
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError, from_json, to_json

from carteiro.email.wording import NOT_JSON, in_plain_words
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import LATEST, Delivery
from carteiro.policy.addresses import judge_address
from carteiro.policy.relay_headers import steers_relay
from carteiro.policy.trace_context import TRACE

MAX_REQUEST_BYTES = 1024 * 1024
MAX_SUBJECT_CHARS = 150
MAX_TTL = timedelta(days=30)
MOST_FAULTS = 20  # reported for one document
MOST_ATTACHMENTS = 50
MOST_COPIES = 5  # in cc, and the same in bcc
MOST_HEADERS = 10
MOST_TAGS = 5
MOST_VALUES = 10_000  # in the variables of a template, at any depth
# Normal forms may be a little longer than the request; twice is far more than enough.
_MAX_STORED_BYTES = 2 * MAX_REQUEST_BYTES
_LONGEST_UTF8 = 4  # bytes of a character

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_CONTROL_CHARACTER = re.compile(f"[{_CONTROL}]")
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]+"  # noqa: S105 - the RFC 2045 word for it
_NO_ADDRESS = "is not an e-mail address"
_PATH_CHARACTER = re.compile(r"[/\\]")
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)

_ESCAPED_NUL = "\\u0000"  # its only form in JSON
_MAX_RETRIES = '{"maxRetries":'
_MOST_FIELDS = 40  # of one object of an e-mail: more than any has
_FEW_COLONS = 2 * _MOST_FIELDS
_MOST_PARTS = 50_000
MOST_PLAIN_BYTES = _MOST_PARTS  # without counting the parts
_MOST_STRINGS = 25_000  # names included: more than the most values have
_CROWDS = {
    "attachments": MOST_ATTACHMENTS,
    "bcc": MOST_COPIES,
    "cc": MOST_COPIES,
    "headers": MOST_HEADERS,
    "recipient": _MOST_FIELDS,
    "tags": MOST_TAGS,
    "template": _MOST_FIELDS,
}
_BARE_NUMBER = re.compile(r"\s*[+-]?[0-9._]+([eE][+-]?[0-9]+)?\s*")


def only_time_as_text(given: object) -> object:
    """Refuse plain numbers: they could be seconds or milliseconds."""
    if isinstance(given, datetime) or (
        isinstance(given, str) and not _BARE_NUMBER.fullmatch(given)
    ):
        return given
    raise PydanticCustomError("time_as_text", "")


def _text(least: int, most: int, pattern: str = f"[^{_CONTROL}]*") -> pydantic.StringConstraints:
    """A text of ``least`` to ``most`` characters that matches the pattern as a whole."""
    return pydantic.StringConstraints(
        strict=True, min_length=least or None, max_length=most, pattern=f"^{pattern}$"
    )


_HEADERS = r"(?i:X-[A-Z0-9_-]+|List-Unsubscribe(?:-[A-Z0-9-]+)?|References|In-Reply-To)"
Body = Annotated[str, pydantic.StringConstraints(strict=True)]
Line = Annotated[str, _text(1, 255)]
Address = Annotated[str, _text(1, 320)]
HeaderName = Annotated[str, _text(0, 76, _HEADERS)]
HeaderValue = Annotated[str, _text(0, 998)]
ContentType = Annotated[str, _text(0, 255, rf"{_TOKEN}/{_TOKEN}(?: *;[^{_CONTROL}]*)?")]
ContentId = Annotated[str, _text(1, 255, rf"[^{_CONTROL}\s<>]*")]


class _Document(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class Attachment(_Document):
    """A file attached to an e-mail; ``content`` is base64."""

    filename: Line = Field(description="A file name, without a path.")
    content_type: ContentType = Field(description="A media type, such as application/pdf.")
    content: Body = Field(description="In base64.")
    content_id: ContentId | None = Field(
        default=None, description="Id in html, as in ``cid:logo``."
    )


class EmailRecipient(_Document):
    """The recipient, known to the tenant by at least one of recipientId, externalId and cpfCnpjHash."""

    email: Address = Field(description="The address in ``to``.")
    recipient_id: Line | None = None
    external_id: Line | None = None
    cpf_cnpj_hash: Line | None = None
    razao_social: Line | None = None
    nome: Line | None = None

    @property
    def has_id(self) -> bool:
        """True if it has an id, and can be matched to a known recipient."""
        return bool(self.recipient_id or self.external_id or self.cpf_cnpj_hash)


class EmailTemplate(_Document):
    """A template and its variables."""

    type: Line = Field(description="The name of a template; its newest version is used.")
    variables: dict[str, Any] = Field(
        default_factory=dict, description="The variables of the template, by name."
    )
    # The rendered version. Requests cannot set it.
    version: SkipJsonSchema[int | None] = Field(default=None, ge=1, strict=True)
    one_click: SkipJsonSchema[bool] = Field(default=False, strict=True)  # that version offers it


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default")  # it means "not given", and a request cannot send it


def _subject_unless_template(given: object, info: pydantic.ValidationInfo) -> object:
    if given is not None:
        return given
    is_reported = "template" not in info.data  # an invalid template is reported already
    if not is_reported and info.data["template"] is None:
        raise PydanticCustomError("missing", "")
    return ""


class Email(_Document):
    """One e-mail to send: a subject of 1 to 150 characters and html or text or both, or a template."""

    # Retries of an e-mail of the table queue; requests cannot set it. Must be the first field, see `max_retries_of`.
    max_retries: SkipJsonSchema[int | None] = Field(default=None, ge=0, strict=True)
    to: Address = Field(description="An address without a display name.")
    template: EmailTemplate | None = Field(
        default=None, description="Gives subject and body, which must then be left out."
    )
    subject: Annotated[Body, pydantic.BeforeValidator(_subject_unless_template)] = Field(
        default=None,
        validate_default=True,
        json_schema_extra=_without_default,
        description=f"1 to {MAX_SUBJECT_CHARS} characters; required unless a template has it.",
    )
    html: Body | None = Field(
        default=None,
        description="At most 512 KiB; no script elements, no event handlers, no ``javascript:`` URLs."
        " Checked before sending: an e-mail that has them is accepted, but becomes a dead letter.",
    )
    text: Body | None = Field(
        default=None, description="The body as plain text, in addition to html or instead of it."
    )
    from_: Address | None = Field(
        default=None,
        alias="from",
        description="An address without a display name, of a domain that the tenant may send from (default:"
        " the tenant's default).",
    )
    # Lists stop at the first fault, as there may be very many.
    cc: Annotated[tuple[Address, ...], pydantic.FailFast()] = Field(
        default=(), max_length=MOST_COPIES, description=f"At most {MOST_COPIES} addresses."
    )
    bcc: Annotated[tuple[Address, ...], pydantic.FailFast()] = Field(
        default=(), max_length=MOST_COPIES, description=f"At most {MOST_COPIES} addresses."
    )
    reply_to: Address | None = Field(default=None, description="An address without a display name.")
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict,
        max_length=MOST_HEADERS,
        description=f"At most {MOST_HEADERS}: ``X-*`` except those that control a relay, ``List-Unsubscribe*``,"
        " References and In-Reply-To.",
    )
    tags: Annotated[tuple[Line, ...], pydantic.FailFast()] = Field(
        default=(),
        max_length=MOST_TAGS,
        description=f"At most {MOST_TAGS} words, to search for it.",
    )
    attachments: Annotated[tuple[Attachment, ...], pydantic.FailFast()] = Field(
        default=(),
        max_length=MOST_ATTACHMENTS,
        description=f"At most {MOST_ATTACHMENTS} files in base64; the whole request can have at most 1 MiB.",
    )
    recipient: EmailRecipient | None = Field(
        default=None,
        description="The recipient behind the address in ``to``, by an id of the tenant's.",
    )
    external_id: Line | None = Field(
        default=None, description="The tenant's own id of the e-mail, to search for it."
    )
    scheduled_at: (
        Annotated[pydantic.AwareDatetime, pydantic.BeforeValidator(only_time_as_text)] | None
    ) = Field(default=None, description="Earliest time to send it: ISO 8601 with a time zone.")
    priority: int = Field(
        default=5,
        ge=1,
        le=10,
        strict=True,
        description="1 (most urgent) to 10, among the tenant's own messages.",
    )
    ttl: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TTL // timedelta(milliseconds=1),
        strict=True,
        description="Time to live in milliseconds from its due time: then it expires.",
    )
    delivery: Delivery = Field(
        default=Delivery.AT_LEAST_ONCE,
        description="Send again, or not, after an attempt with unknown outcome.",
    )
    # Of its request; requests cannot set it. Must be the last field, see `trace_in`.
    trace_context: SkipJsonSchema[Body | None] = Field(default=None, alias=TRACE)

    @property
    def needs_words(self) -> bool:
        """True if its template is not rendered yet."""
        return self.template is not None and self.template.version is None

    def sent_by(self, sender: str) -> Self:
        """The same e-mail with another From."""
        return self.model_copy(update={"from_": sender})


_VALIDATOR, _SERIALIZER = Email.__pydantic_validator__, Email.__pydantic_serializer__


def read_email(body: bytes | str, *, relay_headers: Collection[str] = ()) -> Email:
    """Read the e-mail of a JSON request; raises only `InvalidMessage`.

    ``relay_headers`` are the allowed headers that control a relay, in lower case.
    """
    try:
        encoded = body.encode() if isinstance(body, str) else body
    except UnicodeEncodeError:
        raise _not_unicode() from None
    return _read(encoded, by_name=False, relay_headers=relay_headers)


def make_email(fields: Mapping[str, Any], *, relay_headers: Collection[str] = ()) -> Email:
    """Make an e-mail of fields, by their JSON or Python names, with the checks of a request."""
    try:
        body = orjson.dumps(dict(fields))
    except TypeError:
        raise InvalidMessage([FieldError("body", "has values that JSON cannot hold")]) from None
    return _read(body, by_name=True, relay_headers=relay_headers)


def _read(body: bytes, *, by_name: bool, relay_headers: Collection[str]) -> Email:
    if len(body) > MAX_REQUEST_BYTES:
        raise _too_large()
    if len(body) > _MOST_PARTS:
        refuse_many_parts(body, _MOST_PARTS)
    if body.count(b":") > _FEW_COLONS:
        body = _without_crowds(body)
    try:
        given = _VALIDATOR.validate_json(body, by_alias=True, by_name=by_name)
    except pydantic.ValidationError as error:
        raise plainly(error) from None
    return _judged(given, relay_headers)


def _without_crowds(body: bytes) -> bytes:
    fields = read_fields(body)
    refuse_crowds(fields, _MOST_FIELDS, _CROWDS)
    attachments = fields.get("attachments") if isinstance(fields, dict) else None
    for index, each in enumerate(attachments if isinstance(attachments, list) else ()):
        _refuse_crowd(f"attachments.{index}", each, _MOST_FIELDS)
    return to_json(fields)


def refuse_many_parts(body: bytes, most: int, most_strings: int = _MOST_STRINGS) -> None:
    """Refuse JSON with more objects and lists, or strings, than this, unparsed; braces in texts count too."""
    if len(body) > most and body.count(b"{") + body.count(b"[") > most:
        text = f"must have at most {most} objects, lists and opening braces"
        raise InvalidMessage([FieldError("body", text)])
    # A string has one or two quotes without a backslash before them.
    if len(body) > most_strings and body.count(b'"') - body.count(b'\\"') > 2 * most_strings:
        text = f"must have at most {most_strings} names and texts"
        raise InvalidMessage([FieldError("body", text)])


def read_fields(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """The JSON of a request, to count its parts; a repeated name counts once, and its last value is used.

    Validate `to_json` of the result, not the body: the validator would report each repeated name.
    """
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        raise InvalidMessage([FieldError("body", NOT_JSON)]) from None


def refuse_crowds(fields: object, most: int, parts: Mapping[str, int]) -> None:
    """Refuse an object with more than ``most`` fields, or more items in its ``parts``.

    This limits the number of reported faults. A list that is too long is reported before its items are read.
    """
    if not isinstance(fields, dict):
        return
    _refuse_crowd("body", fields, most)
    for name, most_items in parts.items():
        _refuse_crowd(name, fields.get(name), most_items)


def _refuse_crowd(field: str, given: object, most: int) -> None:
    if isinstance(given, dict | list) and len(given) > most:
        raise InvalidMessage([FieldError(field, f"must have at most {most} items")])


def stored_content(email: Email) -> str:
    """The JSON to store; `restore_email` makes an equal e-mail of it."""
    return _SERIALIZER.to_json(email, by_alias=True, exclude_unset=True, exclude_none=True).decode()


def restore_email(content: str) -> Email:
    """Read a stored e-mail and check its shape again; raises only `InvalidMessage`."""
    try:
        if len(content) * _LONGEST_UTF8 > _MAX_STORED_BYTES < len(content.encode()):
            raise _too_large()
        email: Email = _VALIDATOR.validate_json(content)
    except pydantic.ValidationError as error:
        raise plainly(error) from None
    except UnicodeEncodeError:
        raise _not_unicode() from None
    faults = _nul_faults(email) if _ESCAPED_NUL in content else []
    if email.recipient is not None:
        faults += _recipient_faults(email.recipient, to=email.to)
    if faults:
        raise InvalidMessage(faults[:MOST_FAULTS])
    return email


def max_retries_of(content: str | None) -> int | None:
    """The retries of an e-mail of the table queue, without parsing it; None for any other e-mail."""
    if content is None or not content.startswith(_MAX_RETRIES):
        return None
    return int(content[len(_MAX_RETRIES) : content.index(",")])


def subject_fault(subject: str) -> str | None:
    """The fault of a subject; None if it is valid."""
    if not 1 <= len(subject) <= MAX_SUBJECT_CHARS:
        return f"must have 1 to {MAX_SUBJECT_CHARS} characters"
    if _CONTROL_CHARACTER.search(subject):
        return "must not contain line breaks or control characters"
    return None


def is_blank(body: str | None) -> bool:
    """True if a body is missing, empty or only white space."""
    return not body or body.isspace()


def _judged(email: Email, relay_headers: Collection[str]) -> Email:
    """The checked e-mail, with its addresses in normal form."""
    faults = _nul_faults(email)
    changes = _normal_addresses(email, faults)
    if email.template is None:
        _judge_saying(email, faults)
    else:
        faults += _template_faults(email)
    if email.max_retries is not None:
        faults.append(FieldError("maxRetries", "is not a known field"))
    if email.trace_context is not None:
        faults.append(FieldError(TRACE, "is not a known field"))
    if email.scheduled_at is not None and email.scheduled_at > LATEST:
        faults.append(FieldError("scheduledAt", f"must not be after {LATEST:%Y-%m-%d}"))
    if email.headers:
        faults += _header_faults(email.headers, relay_headers)
    if email.attachments:
        faults += _attachment_faults(email.attachments)
    if email.recipient is not None:
        recipient = _normal_recipient(email.recipient)
        changes["recipient"] = recipient
        faults += _recipient_faults(recipient, to=changes.get("to", email.to))
    if faults:
        raise InvalidMessage(faults[:MOST_FAULTS])
    return email.model_copy(update=changes) if changes else email


def _judge_saying(email: Email, faults: list[FieldError]) -> None:
    if (fault := subject_fault(email.subject)) is not None:
        faults.append(FieldError("subject", fault))
    if is_blank(email.html) and is_blank(email.text):
        faults.append(FieldError("html", "html or text is required", missing=True))


def _template_faults(email: Email) -> Iterator[FieldError]:
    for part in ("subject", "html", "text"):
        if part in email.model_fields_set:
            yield FieldError(part, "must not be given in addition to a template")
    if email.template is None:
        return
    for part, name in (("version", "version"), ("one_click", "oneClick")):
        if part in email.template.model_fields_set:
            yield FieldError(f"template.{name}", "is not a known field")
    if (fault := values_fault(email.template.variables)) is not None:
        yield FieldError("template.variables", fault)


def _nul_faults(email: Email) -> list[FieldError]:
    """Bodies with U+0000, which stores treat differently; a pattern in the field would be slow."""
    html, text = email.html, email.text
    if not ((html and "\0" in html) or (text and "\0" in text)):
        return []
    bodies = (("html", html), ("text", text))
    return [
        FieldError(name, "must not contain U+0000") for name, body in bodies if "\0" in (body or "")
    ]


def _normal_addresses(email: Email, faults: list[FieldError]) -> dict[str, Any]:
    """The fields whose addresses are not in normal form, in that form."""
    changes: dict[str, Any] = {}
    if (normal := _judge_one(email.to, "to", faults)) != email.to:
        changes["to"] = normal
    for field, path, given in (
        ("from_", "from", email.from_),
        ("reply_to", "replyTo", email.reply_to),
    ):
        if given is not None and (normal := _judge_one(given, path, faults)) != given:
            changes[field] = normal
    for field, listed in (("cc", email.cc), ("bcc", email.bcc)):
        if listed:
            changes[field] = tuple(
                [_judge_one(each, f"{field}.{index}", faults) for index, each in enumerate(listed)]
            )
    return changes


def _judge_one(address: str, path: str, faults: list[FieldError]) -> str:
    normal = judge_address(address)
    if normal is None:
        is_named = "<" in address
        text = "must be an address without a display name" if is_named else _NO_ADDRESS
        faults.append(FieldError(path, text))
        return address
    return normal


def _normal_recipient(recipient: EmailRecipient) -> EmailRecipient:
    normal = judge_address(recipient.email)
    if normal is None or normal == recipient.email:
        return recipient
    return recipient.model_copy(update={"email": normal})


def _recipient_faults(recipient: EmailRecipient, *, to: str) -> Iterator[FieldError]:
    if not recipient.has_id:
        needed = "needs one of recipientId, externalId and cpfCnpjHash"
        yield FieldError("recipient", needed, missing=True)
    if recipient.email != to:
        yield FieldError("recipient.email", "must be the address in to")


def values_fault(given: object) -> str | None:
    """The fault of values at any depth: too many, or a number that JSON does not have. None if they are valid."""
    waiting = [given]
    count = 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list):
            count += len(each)
            if count > MOST_VALUES:
                return f"must have at most {MOST_VALUES} values"
            waiting.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, float) and not math.isfinite(each):
            return "must not have NaN, Infinity or a number beyond the range of a double"
    return None


def _header_faults(
    headers: Mapping[str, str], relay_headers: Collection[str]
) -> Iterator[FieldError]:
    names = {name.lower() for name in headers}
    if len(names) < len(headers):
        yield FieldError("headers", "must not name a header twice")
    for name in headers:
        if steers_relay(name) and name.lower() not in relay_headers:
            yield FieldError(
                f"headers.{name}",
                "controls the relay; only delivery.relay_headers in the settings can allow it",
            )


def _attachment_faults(attachments: tuple[Attachment, ...]) -> Iterator[FieldError]:
    for index, attachment in enumerate(attachments):
        # Not a pattern of the field: e-mails accepted earlier must still be restored.
        if _PATH_CHARACTER.search(attachment.filename) or attachment.filename in {".", ".."}:
            yield FieldError(f"attachments.{index}.filename", "must be a file name, without a path")
        try:
            binascii.a2b_base64(attachment.content, strict_mode=True)
        except ValueError:
            yield FieldError(f"attachments.{index}.content", "is not base64")


def _too_large() -> InvalidMessage:
    return InvalidMessage([FieldError("body", f"must have at most {MAX_REQUEST_BYTES} bytes")])


def _not_unicode() -> InvalidMessage:
    return InvalidMessage([FieldError("body", "is not valid Unicode")])


# --- reporting faults without repeating the input -----------------------------------------------

_PATTERNS = {
    "contentType": "must be a media type, such as application/pdf",
    "contentId": "must not contain spaces, angle brackets or control characters",
    "headers": "allows X-*, List-Unsubscribe*, References and In-Reply-To",
}
_JSON_NAMES: Mapping[int | str, str] = {
    name: field.alias or name
    for document in (Email, EmailTemplate, EmailRecipient, Attachment)
    for name, field in document.model_fields.items()
}
_ANY_PATTERN = "must not contain control characters"


def plainly(error: pydantic.ValidationError) -> InvalidMessage:
    """The faults of a document, field by field, without repeating its values."""
    found = error.errors(include_url=False, include_input=False)
    return InvalidMessage([_plain_fault(each) for each in found[:MOST_FAULTS]])


def _plain_fault(error: ErrorDetails) -> FieldError:
    kind = error["type"]
    # An unknown name is shown as sent: `reply_to` is unknown, `replyTo` is known.
    path = _path(error["loc"], {} if kind == "extra_forbidden" else _JSON_NAMES)
    if kind == "string_pattern_mismatch":
        message = _PATTERNS.get(path.rpartition(".")[2], _ANY_PATTERN)
    else:
        message = in_plain_words(error)
    return FieldError(path, message, missing=kind == "missing")


def _path(parts: tuple[int | str, ...], names: Mapping[int | str, str]) -> str:
    """The field's path; a name made up by the sender is not repeated, as it may contain anything."""
    if parts[-1:] == ("[key]",):
        parts = parts[:1]
    return ".".join(names.get(part) or _shown(part) for part in parts) or "body"


def _shown(part: int | str) -> str:
    return str(part) if isinstance(part, int) or _PLAIN_NAME.fullmatch(part) else "(unknown)"
