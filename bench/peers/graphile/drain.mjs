// graphile-worker, tuned: enqueue in lists of 1,000, then drain with a local queue of 500 and batched completion.
//
// No tenants. Batched completion raises the risk that a job runs again after a crash. node drain.mjs JOBS
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { measured } from "./measured.mjs";

const jobs = Number(process.argv[2]);
const connectionString = process.env.BENCH_STORE;
const logger = new Logger(() => () => {});
const list = 1000;
const payload = { body: "x".repeat(989) }; // 1,001 bytes of JSON
const preset = {
  worker: { concurrentJobs: 50, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
};

const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
await measured("enqueue", jobs, async () => {
  for (let first = 0; first < jobs; first += list) {
    await utils.addJobs(Array.from({ length: list }, () => ({ identifier: "no_op", payload })));
  }
});

let left = jobs;
let last;
const begun = new Promise((resolve) => (last = resolve));
const taskList = {
  no_op: async () => {
    if (--left === 0) last();
  },
};
await measured("drain", jobs, async () => {
  const runner = await run({ connectionString, taskList, logger, preset, noHandleSignals: true });
  await begun;
  await runner.stop(); // it finishes what is in flight
}, () => left);
const waiting = "SELECT count(*)::integer AS jobs FROM graphile_worker._private_jobs";
const { rows } = await utils.withPgClient((client) => client.query(waiting));
await utils.release();
if (rows[0].jobs !== 0) throw new Error(`${rows[0].jobs} jobs are left`);
