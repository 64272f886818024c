-- Whether any message to a recipient is left. $1 recipient; $2 tenant; $3 email
SELECT
    EXISTS (SELECT FROM carteiro.messages WHERE recipient_id = $1::text AND tenant = $2::text)
    OR EXISTS (
        SELECT FROM carteiro.messages
        WHERE to_address = $3::text AND tenant = $2::text AND recipient_id IS NULL
    );
