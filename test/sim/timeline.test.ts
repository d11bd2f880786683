/** A timeline shows who lived when, who asked whom and what went wrong; its page trusts nothing that it shows. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { Script } from "node:vm"
import type { Run, Spec } from "../../src/sim/Run.ts"
import { text, timeline } from "../../src/sim/Timeline.ts"
import { assetNames, page } from "../../src/sim/TimelinePage.ts"
import { toy } from "./toy.ts"

const promises = new Map([["charged once", "An operation is charged once."]])

const spec: Spec = {
  seed: "a seed",
  engine: "plan",
  shape: { workers: 1, operations: 3, chaosMs: 1_000 },
  faults: [{ kind: "crash_after", actor: "worker-1#1", label: "charge", index: 0 }],
  deviations: []
}
const run = toy("charge")(spec, { trace: true })
const asset = (name: string) => readFileSync(new URL(`../../src/sim/timeline/${name}`, import.meta.url), "utf8")
const assets = { css: asset(assetNames.css), scripts: assetNames.scripts.map(asset) }
const pageOf = (run: Run, facts: ReadonlyArray<readonly [string, string]> = []) =>
  page(timeline(run, { promises }), { title: "a title", facts, assets })

/** What the page's script reads. */
const dataIn = (page: string): ReturnType<typeof timeline> =>
  JSON.parse(/<script type="application\/json" id="run">(.*?)<\/script>/s.exec(page)?.[1] ?? "null")

describe("a timeline", () => {
  const { broken, lanes, lives, moments } = timeline(run, { promises })

  it("has a lane for each process, whoever it was at the time, and for whom they ask", () => {
    assert.deepStrictEqual(lanes.map(({ name }) => name), ["worker-1", "world", "store"])
  })

  it("ends a life where its process crashed, and begins the next one where it came back", () => {
    const [first, second] = lives.filter(({ lane }) => lane === 0)
    assert.deepStrictEqual([first?.name, first?.end, second?.name], ["worker-1#1", "crash", "worker-1#2"])
    assert.strictEqual(moments[first?.to ?? 0]?.kind, "crash")
    assert.strictEqual(moments[second?.from ?? 0]?.kind, "spawn")
    assert.isBelow(first?.to ?? 0, second?.from ?? 0)
  })

  it("marks the faults that struck, and nothing else", () => {
    const struck = moments.flatMap(({ actor, fault }) => fault === null ? [] : [`${fault} ${actor}`])
    assert.deepStrictEqual(struck, ["crash_after worker-1#1"])
  })

  it("marks a fault of somebody who is not to be seen as the world's", () => {
    const stranger = { kind: "pause", actor: "nobody#1", label: "tick", index: 3 } as const
    const mark = { step: 1, at: 1, actor: "world", kind: "note", label: "pause", detail: "nobody#1/tick/3", hash: "" } as const
    const shown = timeline({ ...run, trace: [mark], fired: [stranger] }, { promises })
    const [moment] = shown.moments
    assert.deepStrictEqual([moment?.fault, shown.lanes[moment?.lane ?? 9]?.name], ["pause", "world"])
  })

  it("shows what was committed in the store, and whose doing it was", () => {
    const event = { step: 1, at: 1, actor: "api-1#1", hash: "" } as const
    const trace = [
      { ...event, kind: "arrive", label: "commit", detail: "" },
      { ...event, kind: "note", label: "committed", detail: "op-f132362c accepted as pending" }
    ] as const
    const id = "019b76db-b78a-7538-9b3c-e4e8f132362c"
    const violations = [{ ...run.violations[0]!, id }]
    const shown = timeline({ ...run, trace, violations, fired: [] }, { promises })
    const committed = shown.moments[1]
    const names = [committed?.lane, committed?.peer].map((lane) => shown.lanes[lane ?? 9]?.name)
    assert.deepStrictEqual(names, ["store", "api-1"])
    assert.strictEqual(shown.broken[0]?.id, `${id} (op-f132362c)`)
  })

  it("connects requests with whom they ask", () => {
    const asked = moments.filter(({ kind }) => kind === "arrive")
    assert.isTrue(asked.every(({ peer }) => lanes[peer ?? 0]?.name === "store"))
    const event = { step: 1, at: 1, actor: "api-1#1", kind: "arrive", detail: "", hash: "" } as const
    const labels = ["provider.extract", "queue.send", "vectors.put", "operations.save", "commit"]
    const trace = labels.map((label) => ({ ...event, label }))
    const shown = timeline({ ...run, trace }, { promises })
    const peers = shown.moments.slice(0, 5).map(({ peer }) => shown.lanes[peer ?? 0]?.name)
    assert.deepStrictEqual(peers, ["provider", "queue", "vector index", "store", "store"])
  })

  it("ends with what was broken, its promise and its moment", () => {
    assert.deepStrictEqual(broken.map(({ invariant, promise }) => [invariant, promise]), [
      ["charged once", "An operation is charged once."]
    ])
    const last = moments.at(-1)
    assert.deepStrictEqual([last?.kind, last?.label, last?.at], ["violation", "charged once", run.virtualMs])
  })
})

describe("as text", () => {
  it("says first what was broken, and then everything, one column for each lane", () => {
    const lines = text(run, { promises }).split("\n")
    assert.deepStrictEqual(lines.slice(0, 3), [
      "BROKEN  charged once: operation-0: 2 times",
      "        An operation is charged once.",
      "seed    a seed (plan)"
    ])
    const crash = lines.find((line) => line.endsWith("crash"))
    assert.match(crash ?? "", / X \. \. +crash$/)
    assert.isTrue(lines.some((line) => line.includes("!! fault crash_after charge, number 0")))
    assert.isTrue(lines.some((line) => / o \. \. +spawn worker-1$/.test(line)))
  })

  it("folds time in which nothing happens", () => {
    const trace = run.trace.map((event, index) => index < 3 ? event : { ...event, at: event.at + 30_000 })
    const folded = text({ ...run, trace }, { promises }).split("\n").filter((line) => line.endsWith("s later"))
    assert.deepStrictEqual(folded.map((line) => line.trim()), [": : :  30.0 s later"])
  })

  it("says that everything held when it did", () => {
    assert.match(text(toy()(spec, { trace: true }), { promises }), /^HELD {4}every invariant\n/)
  })
})

describe("as a page", () => {
  it("holds all of it, and asks for nothing from anywhere", () => {
    const shown = pageOf(run)
    assert.deepStrictEqual(dataIn(shown).moments, JSON.parse(JSON.stringify(timeline(run, { promises }).moments)))
    assert.notMatch(shown.replaceAll("http://www.w3.org/2000/svg", ""), /https?:|src=|href=|@import|url\(/)
    assert.include(shown, "default-src 'none'")
  })

  it("lets nothing that a run says become markup", () => {
    const nasty = "</script><script>alert(1)</script><!--\u2028&\"'"
    const trace = run.trace.map((event) => ({ ...event, label: nasty, detail: nasty }))
    const title = "<b>&\"</b>"
    const shown = page(timeline({ ...run, trace }, { promises }), { title, facts: [[nasty, nasty]], assets })
    assert.notInclude(shown, "alert(1)</script>")
    assert.include(shown, "<title>&lt;b&gt;&amp;&quot;&lt;/b&gt;</title>")
    assert.strictEqual(shown.split("<script").length - 1, 2)
    assert.strictEqual(dataIn(shown).moments[0]?.label, nasty)
    assert.notMatch(assets.scripts.join(), /innerHTML|insertAdjacentHTML|document\.write|outerHTML/)
  })

  it("has scripts that are one script, without a name twice", () => {
    const script = /<script type="module">(.*?)<\/script>/s.exec(pageOf(run))?.[1] ?? ""
    assert.isAbove(script.length, 1_000)
    assert.doesNotThrow(() => new Script(`(() => {${script}})`))
  })
})
