-- Whether any change is requested.
SELECT EXISTS (SELECT FROM carteiro.queue_changes);
