#!lua flags=allow-oom
-- Which epoch the queue was founded under, and completed under; '' if it was not. KEYS: the prefix.
return {redis.call('GET', P .. ':epoch') or '', redis.call('GET', P .. ':complete') or ''}
