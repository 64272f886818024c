#!lua flags=allow-oom
-- The epochs under which the queue was founded and completed; '' if it was not. KEYS: the prefix.
return {redis.call('GET', P .. ':epoch') or '', redis.call('GET', P .. ':complete') or ''}
