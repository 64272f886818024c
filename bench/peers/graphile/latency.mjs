// graphile-worker: pick-up at 100 a second. node latency.mjs COUNT
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { paced } from "./measured.mjs";

const connectionString = process.env.BENCH_STORE;
const logger = new Logger(() => () => {});
const started = {};
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
const taskList = {
  tick: async ({ number }) => {
    started[number] = performance.now();
  },
};
const runner = await run({ connectionString, taskList, logger, concurrency: 50, noHandleSignals: true });
await paced(Number(process.argv[2]), (number) => utils.addJob("tick", { number }), started);
await runner.stop();
await utils.release();
