"""What ``/admin/v1`` offers; opened by an administrator's token alone, never by a tenant's key."""
