/** Every command answers for people and as data, and leaves with the code that it promises. On the toy. */
import { assert, describe, it, vi } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { data, fileOf, folder, plan, sim } from "./cliProcess.ts"
import type { Bug } from "./toy.ts"

// Each command is a process with threads of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000 })

describe("run", () => {
  it("counts what held, and leaves with 0", async () => {
    const said = await data(["run", "--seeds", "40", "--seed-base", "x", "--double", "50%"])
    assert.strictEqual(said.code, 0)
    assert.deepStrictEqual([said.runs, said.violations, said.mismatches], [40, [], []])
    assert.isAbove(said.doubles, 5)
    assert.isAbove(said.runsPerSecond, 0)
    assert.isAbove(said.faults.crash_before, 0)
    const quotas = said.quotas.map(({ state, verdict }: Record<string, string>) => `${state}: ${verdict}`)
    assert.deepStrictEqual(quotas, ["takeover: reached", "never seen: not due"])
    assert.strictEqual(said.bound, "0 of 40 failed: p < 0.075 at 95 %")
  })

  it("says of each failure its seed, its commit and how to repeat it, and every file of it repeats it", async () => {
    const out = join(folder, "found")
    const args = ["run", "--seeds", "100", "--seed-base", "x", "--out", out]
    const { code, out: text } = await sim(args, ["charge", "order"])
    assert.strictEqual(code, 1)
    assert.match(text, /BROKEN charged once\n {2}An operation is charged once/)
    assert.match(text, /seed x\/swarm\/\d+ \(swarm, run \d+; \d+ runs? broke this\), commit [0-9a-f]{12}/)
    assert.match(text, /smallest: 1 fault, 0 deviations, 1 operation/)
    const lines = [...text.matchAll(/repeat: node test\/sim\/toyMain\.ts (replay .*)/g)]
    const repeats = lines.map(([, args]) => args!.split(" "))
    assert.isAtLeast(repeats.length, 4)
    const again = await Promise.all(repeats.slice(-2).map((args) => data(args, ["charge", "order"])))
    assert.deepStrictEqual(again.map(({ code, verdict }) => [code, verdict]), [[1, "broke"], [1, "broke"]])
    const files = readdirSync(out).map((name) => name.replace(/-[0-9a-f]{8}\./, "."))
    assert.includeMembers(files, ["charged-once.html", "charged-once.json", "charged-once.txt"])
  })

  it("repeats a run of the sweep by its number, since its seed does not say which fault struck", async () => {
    const sweep = ["run", "--engine", "sweep", "--seed-base", "x", "--first", "--no-shrink", "--double", "0%"]
    const { violations: [found] } = await data(sweep, ["charge"])
    assert.match(found.repeat[0], /toyMain\.ts run --engine sweep --seed-base x --only \d+$/)
    const again = await data([...found.repeat[0].split(" ").slice(2), "--no-shrink"], ["charge"])
    assert.deepStrictEqual([again.code, again.violations[0].index, again.violations[0].detail], [1, found.index, found.detail])
    const byItsSeed = await sim(["replay", "--seed", found.seed], ["charge"])
    assert.strictEqual(byItsSeed.code, 2)
    assert.include(byItsSeed.err, "run --engine sweep --seed-base x --only N")
  })

  it("leaves with 3 when a state was not reached, or a seed has two histories, and shows where they part", async () => {
    const seeds = (count: number, double: string, bugs: ReadonlyArray<Bug> = []) =>
      sim(["run", "--seeds", String(count), "--seed-base", "x", "--double", double], bugs)
    const [missed, leaking] = await Promise.all([seeds(1_000, "0%"), seeds(30, "100%", ["leak"])])
    assert.strictEqual(missed.code, 3)
    assert.match(missed.out, /never seen {2}0, but 1 were due/)
    assert.strictEqual(leaking.code, 3)
    assert.match(leaking.out, /UNLIKE x\/swarm\/\d+ \(swarm\)\n {2}two histories: one has at 0 ms, step 0: world note leak \d+/)
    const broken = await seeds(60, "0%", ["error"])
    assert.strictEqual(broken.code, 3)
    assert.match(broken.out, /The simulation itself failed at seed x\/swarm\/\d+\n {2}Error: the toy is broken/)
    const [, seed = ""] = /failed at seed (\S+)/.exec(broken.out) ?? []
    const again = await sim(["replay", "--seed", seed], ["error"])
    assert.strictEqual(again.code, 3)
    assert.match(again.err, /Error: the toy is broken/)
  })

  it("goes on for as long as it is told", async () => {
    const said = await data(["run", "--for", "300ms", "--engine", "pct", "--workers", "1"])
    assert.isAbove(said.runs, 0)
    assert.isAtLeast(said.seconds, 0.3)
    assert.deepStrictEqual([said.threads, said.engine, said.exhausted], [1, "pct", false])
  })

  it("prints what was done when it is interrupted", async () => {
    const args = ["run", "--for", "1h", "--json", "--seed-base", "x"]
    const { code, out } = await sim(args, ["charge"], { interrupt: 170 })
    assert.strictEqual(code, 130)
    const said = JSON.parse(out)
    assert.isTrue(said.interrupted)
    assert.isAbove(said.runs, 0)
    assert.strictEqual(said.failed, said.violations.reduce((sum: number, { runs }: { runs: number }) => sum + runs, 0))
  })
})

describe("replay", () => {
  it("tells what came of a seed, with the hash of its history", async () => {
    const [said, again] = await Promise.all([
      data(["replay", "--seed", "x/swarm/1"]),
      data(["replay", "--seed", "x/swarm/1", "--engine", "swarm"])
    ])
    assert.deepStrictEqual([said.code, said.seed, said.violations], [0, "x/swarm/1", []])
    assert.match(said.traceHash, /^[0-9a-f]{16}$/)
    assert.strictEqual(again.traceHash, said.traceHash)
  })

  it("says that a seed of another commit may have another history here", async () => {
    const old = await sim(["replay", "--seed", "0123456789ab/swarm/1"])
    assert.strictEqual(old.code, 0)
    assert.match(old.out, /note +this seed was made on 0123456789ab, and this is [0-9a-f]{12}/)
    assert.strictEqual((await data(["shrink", "--seed", "0123456789ab/swarm/1"])).remark, /note +(.*)/.exec(old.out)![1])
    assert.isNull((await data(["replay", "--seed", "x/swarm/1"])).remark)
  })

  it("leaves with 1 when the plan breaks, 0 when it holds, and 3 when it has gone stale", async () => {
    const file = fileOf("plan.json", plan)
    const page = join(folder, "plan.html")
    const broke = await sim(["replay", "--plan", file, "--trace", "--html", page], ["charge"])
    assert.strictEqual(broke.code, 1)
    assert.match(broke.out, /!! fault crash_after charge, number 0/)
    assert.include(readFileSync(page, "utf8"), "charged once")
    assert.strictEqual((await data(["replay", "--plan", file])).verdict, "held")
    const late = { ...plan.spec.faults![0]!, index: 9 }
    const stale = fileOf("stale.json", { ...plan, spec: { ...plan.spec, faults: [late] } })
    const said = await sim(["replay", "--plan", stale])
    assert.strictEqual(said.code, 3)
    assert.match(said.out, /^stale +no occasion for crash_after at worker-1#1\/charge\/9/)
  })

  it("leaves with 3 when the same plan has two histories", async () => {
    const said = await data(["replay", "--plan", fileOf("plan.json", plan)], ["leak"])
    assert.strictEqual(said.code, 3)
    const leak = "at 0 ms, step 0: world note leak"
    assert.match(said.parted.join("\n"), new RegExp(`one has ${leak} \\d+\nwhere the other has ${leak}`))
  })
})

describe("shrink", () => {
  it("writes down the smallest run that breaks the same", async () => {
    const { violations: [found] } = await data(["run", "--seeds", "100", "--seed-base", "x", "--no-shrink"], ["charge"])
    const said = await data(["shrink", "--seed", found.seed, "--out", folder], ["charge"])
    assert.deepStrictEqual([said.code, said.isPlan, said.faults, said.deviations], [1, true, 1, 0])
    assert.strictEqual((await data(["replay", "--plan", said.files.plan], ["charge"])).traceHash, said.traceHash)
    assert.strictEqual((await data(["shrink", "--seed", found.seed, "--out", folder])).code, 0)
  })
})

describe("scenario", () => {
  it("holds, and is turned red by its bug", async () => {
    const held = await data(["scenario", "all"])
    assert.strictEqual(held.code, 0)
    const verdicts = held.scenarios.map(({ name, verdict }: Record<string, string>) => [name, verdict])
    assert.deepStrictEqual(verdicts, [["charged-by-the-dead", "held"]])
    const broke = await sim(["scenario", "charged-by-the-dead"], ["charge"])
    assert.strictEqual(broke.code, 1)
    assert.match(broke.out, /broke {2}charged-by-the-dead {2}crash_after\n.*\n.*charged once: operation-0: 2 times/)
  })
})

describe("corpus", () => {
  it("holds what was found once, and says so when a plan has gone stale", async () => {
    const { code, corpus } = await data(["corpus"])
    assert.strictEqual(code, 3)
    const verdicts = corpus.map(({ name, verdict }: Record<string, string>) => [name, verdict])
    assert.deepStrictEqual(verdicts, [["charged-long-ago", "stale"], ["charged-twice", "held"]])
    assert.strictEqual((await sim(["corpus", "charged-twice"], ["charge"])).code, 1)
  })
})

describe("mutants", () => {
  it("finds what was planted, in a copy, and misses it only where nobody looks", async () => {
    const said = await data(["mutants"])
    assert.strictEqual(said.code, 0)
    const short = said.mutants.map(({ engine, found, id, verdict }: Record<string, unknown>) => [id, engine, found, verdict])
    assert.deepStrictEqual(short, [
      ["charges-again", "scenario", true, "found"],
      ["charges-again-swept", "sweep", true, "found"],
      ["charges-again-blind", "sweep", false, "unseen, as nobody looked"],
      ["hurries", "swarm", false, "equivalent: no promise says when"]
    ])
    assert.isTrue(said.mutants.every(({ runs }: { runs: number }) => runs > 0))
  })

  it("looks only at canaries when there is no time, and says at what it did not look", async () => {
    const said = await data(["mutants", "--for", "1ms", "--seed", "x"])
    assert.deepStrictEqual(said.mutants.map(({ id }: { id: string }) => id), ["charges-again-blind"])
    assert.deepStrictEqual([said.code, said.seed, said.unseen], [0, "x", ["charges-again", "charges-again-swept", "hurries"]])
    const { out } = await sim(["mutants", "--for", "1ms", "--seed", "x"])
    assert.match(out, /0 of 1 that were looked at \(there are 4\) planted bugs found, 1 not found and not meant to be, 0 not as/)
  })

  it("tells which plan turned red under the bug that it waits for", async () => {
    const said = await sim(["mutants", "--engine", "scenario"])
    assert.strictEqual(said.code, 0)
    assert.match(said.out, /charges-again .* found: charged-by-the-dead breaks charged once/)
    assert.match(said.out, /1 of 1 planted bugs found, 0 not as they should be/)
  })
})

describe("self-test and explain", () => {
  it("explain lists faults, invariants, states and scenarios", async () => {
    const said = await data(["explain"])
    assert.strictEqual(said.code, 0)
    assert.property(said.faults, "lost_acknowledgement")
    assert.include(said.invariants.map(({ name }: { name: string }) => name), "charged once")
    assert.deepStrictEqual(said.scenarios.map(({ bug }: { bug: string }) => bug), ["charges-again"])
  })
})

describe("the service", () => {
  const data = async (args: ReadonlyArray<string>) => {
    const { code, out } = await sim([...args, "--json"], [], { main: "src/sim/main.ts" })
    return { code, ...JSON.parse(out) }
  }

  it("is simulated alike by different threads, and holds", async () => {
    const said = await data(["run", "--seeds", "12", "--seed-base", "cli", "--double", "100%"])
    assert.deepStrictEqual([said.code, said.runs, said.doubles], [0, 12, 12])
    assert.deepStrictEqual([said.violations, said.mismatches, said.errors], [[], [], []])
    assert.isAbove(said.outcomes.stored, 10)
  })

  it("is explained, each state and each invariant in a sentence of its own", async () => {
    const { invariants, quotas } = await data(["explain"])
    const promises = invariants.map(({ promise }: { promise: string }) => promise)
    const meanings = quotas.map(({ meaning }: { meaning: string }) => meaning)
    for (const sentences of [promises, meanings]) {
      assert.isAbove(sentences.length, 40)
      assert.strictEqual(new Set(sentences).size, sentences.length)
    }
  })
})
