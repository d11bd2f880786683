/** Prints how fast the kernel is here: `node --import ./src/sim/withoutAsyncHooks.ts test/sim/speed.ts`. */
import { fineBudget } from "../../src/sim/Kernel.ts"
import { rehearse } from "../../src/sim/rehearsal.ts"

const measure = (name: string, budget: number) => {
  const begun = process.cpuUsage()
  let steps = 0
  let runs = 0
  let seconds = 0
  while (seconds < 2) {
    steps += rehearse({ seed: runs++, budget }).steps
    const { system, user } = process.cpuUsage(begun)
    seconds = (system + user) / 1_000_000
  }
  const each = (count: number) => Math.round(count / seconds).toLocaleString("en")
  console.log(`${name}: a second of one core makes ${each(steps)} steps, or ${each(runs)} runs`)
}

measure("warming up", fineBudget)
measure("an operation a turn", fineBudget)
measure("until it waits", Infinity)
