-- Leaves of messages their ids, states and times. :ids = [id, …]
UPDATE messages
SET
    request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL,
    evidence = NULL, provider_message_id = iif(provider_message_id IS NULL, NULL, ''),
    failure = json_set(failure, '$.reason', '', '$.original_code', NULL)
WHERE id IN (SELECT value FROM json_each(:ids));
