// The stack that many teams write themselves: jobs in BullMQ; outbox, log and event rows in Postgres.
//
// Each e-mail has the states RECEIVED, VALIDATED, SENT_ATTEMPT and SENT, each with its event. Tuned: a pool of
// connections, prepared statements, one statement for all rows of a state, VALIDATED and SENT_ATTEMPT written together,
// 100 jobs at once. The provider takes every e-mail at once. No tenants take turns. node drain.mjs MAILS
import { randomUUID } from "node:crypto";
import { Queue, Worker } from "bullmq";
import pg from "pg";
import { measured } from "./measured.mjs";

const mails = Number(process.argv[2]);
const list = 1000;
const { hostname: host, port } = new URL(process.env.BENCH_QUEUE);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const pool = new pg.Pool({ connectionString: process.env.BENCH_STORE, max: 20 });
const html =
  "<!doctype html><html><body><h1>Your order</h1>" +
  "<p>It is on its way, see <a href='https://shop.example/o/1'>here</a>.</p>".repeat(8) +
  "</body></html>";

const schema = `
  CREATE TABLE email_outbox (
    id uuid PRIMARY KEY, company_id text NOT NULL, recipient text NOT NULL, subject text NOT NULL, html text NOT NULL,
    status text NOT NULL, attempts integer NOT NULL DEFAULT 0, last_error text, request_id text NOT NULL,
    enqueued_at timestamptz NOT NULL DEFAULT now(), processed_at timestamptz
  );
  CREATE INDEX ON email_outbox (company_id, status);
  CREATE TABLE email_logs (
    outbox_id uuid PRIMARY KEY, company_id text NOT NULL, recipient text NOT NULL, subject text NOT NULL,
    status text NOT NULL, ses_message_id text, error_code text, error_reason text, attempts integer NOT NULL,
    duration_ms integer, request_id text NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), sent_at timestamptz,
    failed_at timestamptz
  );
  CREATE INDEX ON email_logs (company_id, created_at);
  CREATE TABLE email_events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email_log_id uuid NOT NULL, type text NOT NULL,
    metadata jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX ON email_events (email_log_id)`;

const accept = {
  name: "accept",
  text: `INSERT INTO email_outbox (id, company_id, recipient, subject, html, status, request_id)
    SELECT i, c, t, s, $5, 'ENQUEUED', i::text FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) AS m (i, c, t, s)`,
};
const received = {
  name: "received",
  text: `WITH o AS (
      UPDATE email_outbox SET attempts = attempts + 1, status = 'RECEIVED' WHERE id = $1
      RETURNING id, company_id, recipient, subject, attempts, request_id, html
    ), l AS (
      INSERT INTO email_logs (outbox_id, company_id, recipient, subject, status, attempts, request_id)
      SELECT id, company_id, recipient, subject, 'RECEIVED', attempts, request_id FROM o
      ON CONFLICT (outbox_id) DO UPDATE SET status = excluded.status, attempts = excluded.attempts
    ), e AS (INSERT INTO email_events (email_log_id, type, metadata) SELECT id, 'RECEIVED', '{}' FROM o)
    SELECT company_id, recipient, subject, attempts, html FROM o`,
};
const attempted = {
  name: "attempted",
  text: `INSERT INTO email_events (email_log_id, type, metadata)
    VALUES ($1, 'VALIDATED', $2), ($1, 'SENT_ATTEMPT', $3)`,
};
const sent = {
  name: "sent",
  text: `WITH o AS (UPDATE email_outbox SET status = 'SENT', processed_at = now() WHERE id = $1),
    l AS (
      UPDATE email_logs SET status = 'SENT', ses_message_id = $2, duration_ms = $3, sent_at = now() WHERE outbox_id = $1
    )
    INSERT INTO email_events (email_log_id, type, metadata) VALUES ($1, 'SENT', $4)`,
};

const validations = JSON.stringify({ validations: ["INTEGRITY", "OUTBOX", "RECIPIENT", "TEMPLATE"] });
const unsafe = /<script|javascript:|\son\w+\s*=/i;

function validate(job, row) {
  if (!row || row.company_id !== job.companyId) throw new Error("OUTBOX_NOT_FOUND");
  if (!/^[^@\s]+@[^@\s]+$/.test(row.recipient)) throw new Error("INVALID_EMAIL");
  if (!row.html || row.subject.length > 150 || unsafe.test(row.html)) throw new Error("INVALID_TEMPLATE");
}

async function process_({ data: job }) {
  const began = performance.now();
  const { rows } = await pool.query({ ...received, values: [job.outboxId] });
  validate(job, rows[0]);
  const attempt = rows[0].attempts;
  const declared = JSON.stringify({ attempt, provider: "ses" });
  await pool.query({ ...attempted, values: [job.outboxId, validations, declared] });
  const sesMessageId = randomUUID(); // the provider has taken it
  const durationMs = Math.round(performance.now() - began);
  const metadata = JSON.stringify({ sesMessageId, durationMs, attempt });
  await pool.query({ ...sent, values: [job.outboxId, sesMessageId, durationMs, metadata] });
}

async function enqueue(queue, first) {
  const numbers = Array.from({ length: list }, (_, index) => first + index);
  const ids = numbers.map(() => randomUUID());
  const companies = numbers.map((number) => `tenant-${number % 20}`);
  const addresses = numbers.map((number) => `customer${number}@example.com`);
  const subjects = numbers.map((number) => `Order ${number}`);
  await pool.query({ ...accept, values: [ids, companies, addresses, subjects, html] });
  await queue.addBulk(
    ids.map((outboxId, index) => ({
      name: "email:send",
      data: { outboxId, companyId: companies[index], requestId: outboxId },
      opts: { jobId: outboxId, attempts: 5 },
    })),
  );
}

await pool.query(schema);
const queue = new Queue("email-send", { connection, defaultJobOptions: { removeOnComplete: true } });
await queue.waitUntilReady();
await measured("mail accept", mails, async () => {
  for (let first = 0; first < mails; first += list) await enqueue(queue, first);
});

let left = mails;
let last;
const completed = new Promise((resolve) => (last = resolve));
const worker = new Worker("email-send", process_, { connection, concurrency: 100, autorun: false });
worker.on("completed", () => {
  if (--left === 0) last();
});
await worker.waitUntilReady();
await measured("mail drain", mails, async () => {
  worker.run();
  await completed;
}, () => left);
await worker.close();
const unfinished = await queue.count();
await queue.close();
const { rows } = await pool.query("SELECT count(*)::int AS sent FROM email_logs WHERE status = 'SENT'");
await pool.end();
if (unfinished !== 0 || rows[0].sent !== mails) throw new Error(`${unfinished} jobs are left, ${rows[0].sent} sent`);
