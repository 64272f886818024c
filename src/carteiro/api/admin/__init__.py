"""Endpoints of ``/admin/v1``; they need an admin token, a tenant's key is refused."""
