"""The queue in Redis (7.0 or newer) or Valkey; the ledger is in another store."""

from carteiro.stores.redis.examine import examine
from carteiro.stores.redis.options import RedisOptions
from carteiro.stores.redis.setup import open_redis

__all__ = ["RedisOptions", "examine", "open_redis"]
