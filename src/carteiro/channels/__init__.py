"""Channels: ways to tell people about alerts, one file each."""
