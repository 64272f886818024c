// BullMQ: enqueue in lists of 1,000, then drain with 100 jobs at once; finished ones are removed.
//
// No tenants. node drain.mjs JOBS
import { Queue, Worker } from "bullmq";
import { measured } from "./measured.mjs";

const jobs = Number(process.argv[2]);
const { hostname: host, port } = new URL(process.env.BENCH_QUEUE);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const list = 1000;
const data = { body: "x".repeat(989) }; // 1,001 bytes of JSON

const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
await queue.waitUntilReady();
await measured("enqueue", jobs, async () => {
  for (let first = 0; first < jobs; first += list) {
    await queue.addBulk(Array.from({ length: list }, () => ({ name: "no_op", data })));
  }
});

let left = jobs;
let last;
const completed = new Promise((resolve) => (last = resolve));
const worker = new Worker("bench", async () => {}, { connection, concurrency: 100, autorun: false });
worker.on("completed", () => {
  if (--left === 0) last();
});
await worker.waitUntilReady();
await measured("drain", jobs, async () => {
  worker.run();
  await completed;
}, () => left);
await worker.close();
const unfinished = await queue.count();
await queue.close();
if (unfinished !== 0) throw new Error(`${unfinished} jobs are left`);
