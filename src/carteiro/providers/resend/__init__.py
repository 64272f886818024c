"""Hands mail to Resend over its REST API."""
