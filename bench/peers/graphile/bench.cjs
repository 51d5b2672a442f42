// One operation of the queue benchmark on graphile-worker: node bench.cjs OPERATION URL ORDER
// Prints {jobs, seconds, latencies} as JSON. Uses the settings that graphile's performance page
// advises for many small jobs: a local queue, and completions batched within one turn of the loop.
"use strict";
const { Logger, makeWorkerUtils, run } = require("graphile-worker");

const [operation, connectionString, orderJson] = process.argv.slice(2);
const order = JSON.parse(orderJson);
const RUN_MS_MAX = 280_000;
const JOBS_AT_ONCE = 4; // for jobs that do nothing, 24 and 100 were slower
const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});
const now = () => Number(process.hrtime.bigint()) / 1e9;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function withUtils(work) {
  const utils = await makeWorkerUtils({ connectionString, logger });
  try {
    return await work(utils);
  } finally {
    await utils.release();
  }
}

const runner = (taskList, worker) =>
  run({ preset: { worker: { connectionString, logger, ...worker } }, taskList, noHandleSignals: true });

async function enqueue(utils) {
  const began = now();
  for (let n = 0; n < order.count; n++) await utils.addJob("noop", { n });
  return { jobs: order.count, seconds: now() - began };
}

async function bulk(utils) {
  const began = now();
  for (let start = 0; start < order.count; start += order.rows) {
    const rows = Math.min(order.rows, order.count - start);
    await utils.addJobs(
      Array.from({ length: rows }, (_, n) => ({ identifier: "noop", payload: { n: start + n } })),
    );
  }
  return { jobs: order.count, seconds: now() - began };
}

async function drain() {
  let done = 0;
  let enough;
  const reached = new Promise((resolve) => (enough = resolve));
  const noop = () => {
    if (++done >= order.count) enough();
  };
  const batched = { localQueue: { size: order.batch }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const began = now();
  const worker = await runner(
    { noop },
    { concurrentJobs: JOBS_AT_ONCE, ...(order.batch > 1 ? batched : {}) },
  );
  await reached;
  await worker.stop();
  return { jobs: done, seconds: now() - began };
}

async function pickup(utils) {
  let started;
  const timed = () => started(now());
  const worker = await runner({ timed }, { concurrentJobs: 1 });
  const latencies = [];
  for (let n = -1; n < order.count; n++) {
    const start = new Promise((resolve) => (started = resolve));
    await pause(5); // the worker goes back to waiting
    const began = now();
    await utils.addJob("timed", {});
    const latency = (await start) - began;
    if (n >= 0) latencies.push(latency);
  }
  await worker.stop();
  return { jobs: order.count, seconds: latencies.reduce((a, b) => a + b, 0), latencies };
}

const operations = {
  install: (utils) => utils.migrate().then(() => ({ jobs: 0, seconds: 0 })),
  enqueue,
  bulk,
  drain,
  pickup,
};

setTimeout(() => process.exit(124), RUN_MS_MAX).unref();
withUtils(operations[operation])
  .then((sample) => console.log(JSON.stringify({ latencies: [], ...sample })))
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
