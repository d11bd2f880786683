/** A thread that simulates: one task after another, until it is ended. */
import { parentPort, workerData } from "node:worker_threads"
import { load } from "./Harness.ts"
import { perform, type Task } from "./Task.ts"

const { simulate } = await load(new URL(workerData as string))
const now = () => performance.now()

parentPort?.on("message", (task: Task) => parentPort?.postMessage(perform(task, simulate, now), []))
