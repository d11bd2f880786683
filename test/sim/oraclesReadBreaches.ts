/** What reads and refusals told, and could not have been so; and the promise that has to notice. */
import { InputGone, NotFound, VersionConflict, WrongState } from "../../src/domain/Refusal.ts"
import { History } from "./oraclesHistory.ts"
import { accepted, api, claimed, done, planned } from "./oraclesStory.ts"
import * as Telling from "./oraclesTelling.ts"

const { about, change, event, memories, refused, retry, tell, wanted } = Telling

const failed = () => claimed().run(api, (tx) => tx.cancel(1))

/** The first memory is shown to somebody who asks for the first page of these. */
const listed = (change: Parameters<typeof wanted>[0]) =>
  tell(done(), { _tag: "List", ...wanted(change) }, memories(done(), done().memoryOf(1)))

export const readBreaches: ReadonlyArray<readonly [breaks: string, history: () => History]> = [
  ["shown-is-wanted", () => tell(done(), { _tag: "Search", word: "canary", ...wanted({ metadata: { of: "it" } }) }, memories(done(), done().memoryOf(1)))],
  ["shown-is-wanted", () => listed({ scope: { user_id: "ben" } })],
  ["shown-is-wanted", () => listed({ limit: 0 })],
  ["shown-is-wanted", () => {
    const history = done(done(), 2)
    return tell(history, { _tag: "Memory", memoryId: history.memoryOf(2) }, memories(history, history.memoryOf(1)))
  }],
  ["shown-is-wanted", () => tell(done(), { _tag: "Events", scope: { user_id: "ben" }, limit: 8 }, { _tag: "Events", events: [Telling.eventOf(done(), 1)] })],
  ["told-what-was", () => tell(done(), { _tag: "Events", scope: {}, limit: 8 }, { _tag: "Events", events: [{ ...Telling.eventOf(done(), 1), attempts: 2 }] })],
  ["lists-are-complete", () => tell(done().wait(10), { _tag: "Events", scope: {}, limit: 8 }, { _tag: "Events", events: [] })],
  ["searches-find-words", () => tell(done().wait(10), { _tag: "Search", word: "fact", ...wanted() }, memories(done()))],
  ["shown-is-current", () => {
    const history = done()
    const shown = memories(history, history.memoryOf(1))
    history.run(api, (tx) => tx.change(20, history.memoryOf(1), null)).wait(10)
    return tell(history, { _tag: "Search", word: "canary", ...wanted() }, shown)
  }],
  ["shown-is-current", () => {
    const history = done()
    const shown = memories(history, history.memoryOf(1))
    history.run(api, (tx) => tx.change(20, history.memoryOf(1), "edited")).wait(10)
    return tell(history, { _tag: "Memory", memoryId: history.memoryOf(1) }, shown)
  }],
  ["shown-is-current", () => {
    const history = done()
    const before = event(history, 1)
    history.run(api, (tx) => tx.change(20, history.memoryOf(1), null)).wait(10)
    return tell(history, about("Event", 1), before)
  }],
  ["lists-are-complete", () => tell(done(), { _tag: "List", ...wanted() }, memories(done()))],
  ["lists-are-complete", () => {
    const history = done(done(), 2)
    const shown = memories(history, ...[1, 2].map((n) => history.memoryOf(n)).toSorted())
    return tell(history, { _tag: "List", ...wanted() }, shown)
  }],
  ["refused-for-a-reason", () => {
    const history = done()
    const question = { _tag: "Memory", memoryId: history.memoryOf(1) } as const
    return tell(history, question, refused(new NotFound({ what: "memory" })))
  }],
  ["refused-for-a-reason", () => {
    const history = done()
    return tell(history, change("Update", history.memoryOf(1), 1), refused(new VersionConflict({ current: 1 })))
  }],
  ["refused-for-a-reason", () => {
    const history = done()
    return tell(history, change("Update", history.memoryOf(1), 1), refused(new VersionConflict({ current: 3 })))
  }],
  ["refused-for-a-reason", () => tell(planned(), about("Cancel", 1), refused(new WrongState({ state: "succeeded" })))],
  ["refused-for-a-reason", () => tell(planned(), about("Cancel", 1), refused(new WrongState({ state: "running" })))],
  ["refused-for-a-reason", () => tell(failed().wait(10), about("Purge", 1), refused(new WrongState({ state: "failed" })))],
  ["refused-for-a-reason", () => tell(failed().wait(10), retry(1), refused(new WrongState({ state: "failed" })))],
  ["refused-for-a-reason", () => tell(failed(), retry(1), refused(new InputGone()))],
  ["balances-were-those", () => tell(accepted().wait(10), { _tag: "Usage" }, Telling.balances(new History()))]
]
