/** In a healed world what stays is alive, and whatever dies there after all comes back. */
import { assert, describe, it } from "@effect/vitest"
import { Layer } from "effect"
import { Machine } from "../../src/sim/Fleet.ts"
import * as Healing from "../../src/sim/Healing.ts"
import { Kernel } from "../../src/sim/Kernel.ts"

const leaseMs = 1_000
const ignore = () => {}

const machineOf = (kernel: Kernel): Machine<never> => {
  const machine = new Machine<never>({
    kernel,
    name: "worker-1",
    layer: () => Layer.empty,
    leaseMs,
    listener: { launched: ignore, died: ignore, broke: ignore }
  })
  machine.start()
  return machine
}

describe("a machine that stays", () => {
  it("comes back when what was told to stop before the world healed ends after it", () => {
    for (let seed = 0; seed < 100; seed++) {
      const kernel = new Kernel({ seed })
      const machine = machineOf(kernel)
      kernel.after(10, "heal", () => Healing.settle(kernel.key, [machine], new Set([machine]), ignore))
      kernel.after(20, "kill", () => machine.process!.crash())
      kernel.run({ forMs: 10 * leaseMs })
      assert.isTrue(machine.alive, `seed ${seed}`)
    }
  })

  it("is the only one: the others are dead for good", () => {
    for (let seed = 0; seed < 100; seed++) {
      const kernel = new Kernel({ seed })
      const machine = machineOf(kernel)
      kernel.after(10, "heal", () => Healing.settle(kernel.key, [machine], new Set(), ignore))
      kernel.run({ forMs: 10 * leaseMs })
      assert.isFalse(machine.alive, `seed ${seed}`)
    }
  })
})
