"""Settings of alerts, and of the notices about them."""

from collections.abc import Iterable

import pydantic
from pydantic import Field

from carteiro.config import values
from carteiro.model import TenantId
from carteiro.model.alerts import AlertDefinition, AlertRules
from carteiro.policy.alert_values import Thresholds


class AlertSettings(values.Section):
    """Thresholds of the alerts."""

    dead_letters: values.Count
    dead_letter_share: values.Share
    tenant_dead_letters: values.Count
    failure_rate: values.Share
    template_failure_rate: values.Share
    min_messages: values.SomeCount
    delivery_p95: values.SomeDuration = Field(alias="delivery_p95_ms")
    queue_age_p95: values.SomeDuration = Field(alias="queue_age_p95_ms")
    table_queue_pending: values.Count
    scheduler_silent: values.SomeDuration = Field(alias="scheduler_silent_ms")
    circuit_open: values.SomeDuration = Field(alias="circuit_open_ms")
    error_mix: values.Share
    error_mix_failures: values.SomeCount
    queue_memory_high: values.Share
    queue_memory_critical: values.Share
    queue_rejected: values.Count
    queue_out_of_memory: values.Count

    @property
    def thresholds(self) -> Thresholds:
        """The same, for policies."""
        return Thresholds(**{name: getattr(self, name) for name in Thresholds.__match_args__})


class NoticeSettings(values.Section):
    """Channels of notices about alerts, and their times."""

    log: bool
    webhook: values.UrlOrNone
    webhook_secret: values.SecretReference
    alertmanager: values.PageUrlOrNone
    mail_from: values.AddressOrNone
    mail_to: values.AddressOrNone
    mail_tenant: values.Text
    remind_after: values.Duration = Field(alias="remind_after_ms")
    resolve_after: values.Duration = Field(alias="resolve_after_ms")
    max_open: values.SomeCount
    dead_letters_every: values.DurationOrNone = Field(alias="dead_letters_every_ms")

    @pydantic.field_validator("webhook_secret")
    @classmethod
    def _signs(cls, secret: str, info: pydantic.ValidationInfo) -> str:
        if info.data.get("webhook") and not secret:
            raise ValueError("should be set with notices.webhook: receivers check the signature")
        return secret

    @pydantic.field_validator("mail_to")
    @classmethod
    def _has_a_sender(cls, address: str, info: pydantic.ValidationInfo) -> str:
        if address and info.data.get("mail_from") == "":
            raise ValueError("should be empty without notices.mail_from")
        return address

    def rules(self, definitions: Iterable[AlertDefinition]) -> AlertRules:
        """The definitions by name, and the times of notices."""
        return AlertRules(
            {each.name: each for each in definitions},
            remind_after=self.remind_after,
            resolve_after=self.resolve_after,
            most=self.max_open,
            dead_letters_every=self.dead_letters_every,
            system=TenantId(self.mail_tenant),
        )
