// BullMQ: pick-up at 100 a second. node latency.mjs COUNT
import { Queue, Worker } from "bullmq";
import { paced } from "./measured.mjs";

const { hostname: host, port } = new URL(process.env.BENCH_QUEUE);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const started = {};
const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
const note = async ({ data }) => {
  started[data.number] = performance.now();
};
const worker = new Worker("bench", note, { connection, concurrency: 100 });
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
await paced(Number(process.argv[2]), (number) => queue.add("tick", { number }), started);
await worker.close();
await queue.close();
