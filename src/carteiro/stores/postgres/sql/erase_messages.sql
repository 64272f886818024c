-- Leaves of messages their ids, states and times. $1 message numbers
WITH blanked AS (
    UPDATE carteiro.entries
    SET version = version + 1, evidence = NULL,
        provider_message_id = CASE WHEN provider_message_id IS NOT NULL THEN '' END,
        failure = (carteiro.readable(failure::text)::jsonb || '{"reason": "", "original_code": null}')::json
    WHERE message_no = ANY ($1::bigint[])
)
UPDATE carteiro.messages
SET request_id = '', external_id = NULL, recipient_id = NULL, to_address = NULL, subject = NULL, tags = NULL
WHERE no = ANY ($1::bigint[]);
