SELECT mark_email_failed(
  'QUEUE_ID_HERE'::uuid,
  'Teste de retry'
);
