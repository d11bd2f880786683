/** What the command line says when something is wrong with the harness, the place or the reader, and not the service. */
import { assert, describe, it, vi } from "@effect/vitest"
import { sim } from "./cliProcess.ts"

// Each command is a process with threads of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000 })

describe("a run that computes for ever", () => {
  const hangs = { env: { TOY_HANGS: "x/swarm/5" } }

  it("is named, with 3, and what was done before it is told", async () => {
    const { code, out } = await sim(["run", "--seeds", "20", "--seed-base", "x", "--workers", "1", "--first", "--json"], [], hangs)
    assert.strictEqual(code, 3)
    const said = JSON.parse(out)
    assert.deepStrictEqual(said.errors, [{
      seed: "x/swarm/5",
      index: 5,
      message: "a run has not come to its end within 5 s: something computes for ever",
      repeat: "node test/sim/toyMain.ts replay --seed x/swarm/5 --engine swarm"
    }])
    assert.strictEqual(said.runs, 5)
  })

  it("does not hide what broke", async () => {
    const args = ["run", "--seeds", "100", "--seed-base", "x", "--workers", "1", "--json"]
    const { code, out } = await sim(args, ["charge"], { env: { TOY_HANGS: "x/swarm/90" } })
    assert.strictEqual(code, 1)
    const said = JSON.parse(out)
    assert.strictEqual(said.errors[0].seed, "x/swarm/90")
    assert.deepStrictEqual(said.violations.map(({ invariant }: Record<string, unknown>) => invariant), ["charged once"])
  })

  it("ends a replay too, and tells it as data", async () => {
    const { code, err, out } = await sim(["replay", "--seed", "x/swarm/5", "--json"], [], hangs)
    assert.strictEqual(code, 3)
    assert.include(err, "something computes for ever")
    assert.deepStrictEqual(JSON.parse(out), { error: err.trim(), exitCode: 3 })
  })
})

describe("a failure that cannot be written down", () => {
  it("is told all the same, with 1 and how to repeat it", async () => {
    // A folder that is there, and takes no files.
    const { code, out } = await sim(["run", "--seeds", "40", "--seed-base", "x", "--out", "/proc", "--json"], ["charge"])
    assert.strictEqual(code, 1)
    const [found] = JSON.parse(out).violations
    assert.match(found.unwritten, /^\/proc\/.* cannot be written/)
    assert.isNull(found.files)
    assert.match(found.repeat[0], /replay --seed x\/swarm\/\d+ --engine swarm$/)
  })
})

describe("a search for less that cannot be written down", () => {
  it("is told all the same, with 1", async () => {
    const { out: text } = await sim(["run", "--seeds", "40", "--seed-base", "x", "--no-shrink", "--json"], ["charge"])
    const [{ seed }] = JSON.parse(text).violations
    const { code, out } = await sim(["shrink", "--seed", seed, "--out", "/proc", "--json"], ["charge"])
    const said = JSON.parse(out)
    assert.deepStrictEqual([code, said.files, said.faults], [1, null, 1])
    assert.match(said.unwritten, /^\/proc\/.* cannot be written/)
  })
})

describe("no run", () => {
  it("of the number that was asked for is no run that held", async () => {
    const { code, out } = await sim(["run", "--engine", "sweep", "--only", "999999", "--json"])
    assert.strictEqual(code, 3)
    assert.strictEqual(JSON.parse(out).unmade, 999_999)
  })
})

describe("nobody who reads", () => {
  it("changes no exit code, and is no error", async () => {
    for (const [bugs, code] of [[[], 0], [["charge"], 1]] as const) {
      const said = await sim(["run", "--seeds", "40", "--seed-base", "x", "--no-shrink"], bugs, { read: false })
      assert.deepStrictEqual([said.code, said.err], [code, ""])
    }
  })
})

describe("Ctrl-C", () => {
  it("prints what was done while failures are made small", async () => {
    const args = ["run", "--seeds", "40", "--seed-base", "x", "--workers", "1", "--double", "0%", "--json"]
    const { code, out } = await sim(args, ["charge"], { env: { TOY_TIRES: "40" }, interrupt: 41 })
    assert.strictEqual(code, 130)
    const said = JSON.parse(out)
    assert.deepStrictEqual([said.runs, said.interrupted, said.violations.length], [40, true, 1])
  })

  it("says which plans were not looked at", async () => {
    const { code, out } = await sim(["corpus", "--json"], [], { interrupt: 1 })
    assert.strictEqual(code, 130)
    const { corpus, error, unseen } = JSON.parse(out)
    if (error === undefined) assert.strictEqual(corpus.length + unseen.length, 2)
    else assert.strictEqual(error, "interrupted")
  })
})

describe("wrong usage", () => {
  it.each([
    ["run", "--seeds", "0"],
    ["run", "--seeds", "2", "--store", "pglite"],
    ["replay", "--plan", "/nowhere/x.json"],
    ["mutants", "nope"]
  ])("is data where data was asked for, and nothing else is there: %s %s %s %s", async (...args) => {
    const { code, err, out } = await sim([...args.filter((arg) => arg !== undefined), "--json"])
    const { error, exitCode } = JSON.parse(out)
    assert.deepStrictEqual([code, exitCode], [2, 2])
    assert.include(err, error.split("\n")[0])
  })
})
