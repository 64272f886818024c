// As figures.py does: a figure per line, with the CPU time of the servers that BENCH_SERVER_PIDS name.
import { readFileSync } from "node:fs";

const ticksPerSecond = 100;

/** User and system time so far, of all their processes: see processes.py. */
function serverSeconds() {
  const pids = (process.env.BENCH_SERVER_PIDS ?? "").split(" ").filter(Boolean);
  return pids.reduce((sum, pid) => sum + ticks(pid, 4) + ticksOfChildren(pid), 0) / ticksPerSecond;
}

function ticksOfChildren(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "ascii").split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + ticks(child, 2), 0);
}

function ticks(pid, count) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().split(" ");
    return fields.slice(11, 11 + count).reduce((sum, each) => sum + Number(each), 0);
  } catch {
    return 0; // it has ended
  }
}

/** As watched.py does: end with an error when nothing has moved for two minutes. */
async function watched(name, progress, work) {
  const patience = 120_000;
  let [seen, since] = [progress(), performance.now()];
  const watching = setInterval(() => {
    const now = progress();
    if (now !== seen) [seen, since] = [now, performance.now()];
    else if (performance.now() - since >= patience) {
      console.error(`${name}: nothing has moved for ${patience / 1000} s, at ${now}`);
      process.exit(70);
    }
  }, patience / 20);
  try {
    await work();
  } finally {
    clearInterval(watching);
  }
}

/** Time the work in this process and print what it took; progress says how far it is. */
export async function measured(name, count, work, progress = undefined) {
  const [server, cpu, wall] = [serverSeconds(), process.cpuUsage(), performance.now()];
  await (progress ? watched(name, progress, work) : work());
  const seconds = (performance.now() - wall) / 1000;
  const used = process.cpuUsage(cpu);
  const figure = { name, count, seconds, cpu_seconds: (used.user + used.system) / 1e6 };
  console.log(JSON.stringify({ ...figure, server_cpu_seconds: serverSeconds() - server }));
}

/** As pace.py does: jobs at 100 a second, and how long each waits from the answer, and from the call, to its start. */
export async function paced(count, send, started) {
  const [perSecond, warmingUp] = [100, 100];
  const [called, answered, sending] = [[], [], []];
  const begun = performance.now();
  for (let number = 0; number < count + warmingUp; number++) {
    const wait = begun + (number / perSecond) * 1000 - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    called[number] = performance.now();
    sending.push(send(number).then(() => (answered[number] = performance.now())));
  }
  await Promise.all(sending);
  const all = () => answered.every((_, number) => started[number] !== undefined);
  await watched("pick-up", () => Object.keys(started).length, async () => {
    while (!all()) await new Promise((resolve) => setTimeout(resolve, 10));
  });
  for (const [name, since] of [["pick-up", answered], ["call to start", called]]) {
    const waits = since.map((at, number) => Math.max(0, started[number] - at)).slice(warmingUp);
    waits.sort((one, other) => one - other);
    const at = (share) => waits[Math.floor(share * (count - 1))];
    console.log(JSON.stringify({ name, p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) }));
  }
}
