"""A local inbox that plays errors by address."""
