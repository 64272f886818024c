"""Hands mail to a relay over SMTP."""

from carteiro.providers.smtp.options import SmtpOptions, Tls
from carteiro.providers.smtp.provider import SmtpProvider

__all__ = ["SmtpOptions", "SmtpProvider", "Tls"]
