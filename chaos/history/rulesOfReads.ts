/** What has to be true of what clients saw over time: nothing goes backwards, and the end is what was seen last. */
import { type Book, type Finding, nameOf, type Rule, unless, type Written } from "./book.ts"
import { before, type SeenEvent, type State, type Told } from "./told.ts"

/** A look at an event: by reading it, or in the receipt of a command. */
interface Sight {
  readonly told: Told
  readonly id: string
  readonly state: State
  /** Null in a receipt. */
  readonly event: SeenEvent | null
}

const sightOf = (told: Told): Sight | null =>
  told.answer._tag === "Event"
    ? { told, id: told.answer.event.id, state: told.answer.event.state, event: told.answer.event }
    : told.answer._tag === "Acknowledged"
    ? { told, id: told.answer.eventId, state: told.answer.state, event: null }
    : null

/** The looks at each event, in the order in which they were answered. */
const sightsOf = ({ told }: Book): ReadonlyArray<ReadonlyArray<Sight>> =>
  [
    ...Map.groupBy(
      told.flatMap((one) => sightOf(one) ?? []),
      (sight) => nameOf(sight.told.workspace, sight.id)
    ).values()
  ].map((sights) => sights.toSorted((a, b) => a.told.answeredAt - b.told.answeredAt))

/** Pairs of looks of which the first was surely over before the second began. */
const inOrder = (book: Book, check: (first: Sight, second: Sight) => ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  sightsOf(book).flatMap((sights) =>
    sights.flatMap((second, index) =>
      sights.slice(0, index).flatMap((first) => before(first.told, second.told) ? check(first, second) : [])
    )
  )

/** Whether a manual retry may have run the event again between two moments. One without an answer may come at any time. */
const mayBeRetried = (writes: ReadonlyArray<Written>, workspace: string, eventId: string, from: number, to: number): boolean =>
  writes.some(({ answer, answeredAt, asked, askedAt, workspace: its }) =>
    its === workspace && asked.kind === "retry" && asked.eventId === eventId && askedAt < to &&
    (answer._tag === "Unknown" || answer._tag === "Acknowledged" && answeredAt > from)
  )

const resultsOf = ({ event }: Sight): string | null =>
  event === null ? null : JSON.stringify(event.results.map(({ change, id, version }) => [id, change, version]))

export const rulesOfReads: ReadonlyArray<Rule> = [
  {
    name: "states-go-forward",
    promise: "What has succeeded stays so, with the same results; what has failed stays so until somebody retries it.",
    check: (book) =>
      inOrder(book, (first, second) => {
        const { workspace } = second.told
        if (first.state === "succeeded") {
          return [
            ...unless(second.state === "succeeded", workspace, second.id, `it had succeeded, and then was ${second.state}`),
            ...unless(
              second.state !== "succeeded" || resultsOf(first) === null || resultsOf(second) === null ||
                resultsOf(first) === resultsOf(second),
              workspace,
              second.id,
              "its results changed after it had succeeded"
            )
          ]
        }
        return unless(
          first.state !== "failed" || second.state === "failed" ||
            mayBeRetried(book.writes, workspace, second.id, first.told.askedAt, second.told.answeredAt),
          workspace,
          second.id,
          `it had failed, nobody retried it, and then it was ${second.state}`
        )
      })
  },
  {
    name: "money-goes-forward",
    promise: "What was reserved, charged and refunded for an event never becomes less, and never more than was reserved.",
    check: (book) => [
      ...inOrder(book, ({ event: first }, { event: second, told }) =>
        first === null || second === null ? [] : (["reserved", "charged", "refunded"] as const).flatMap((name) =>
          unless(
            second.usage[name] >= first.usage[name],
            told.workspace,
            second.id,
            `${name} went from ${first.usage[name]} to ${second.usage[name]}`
          )
        )),
      ...book.told.flatMap(({ answer, workspace }) => {
        if (answer._tag !== "Event") return []
        const { charged, refunded, reserved } = answer.event.usage
        return unless(charged + refunded <= reserved, workspace, answer.event.id, `${charged} + ${refunded} of ${reserved}`)
      })
    ]
  },
  {
    name: "the-end-is-what-was-seen",
    promise: "The database ends with the terminal state that was seen last, unless a manual retry came after it.",
    check: (book) =>
      sightsOf(book).flatMap((sights) =>
        sights.flatMap((sight) => {
          const { workspace } = sight.told
          const ended = book.operations.get(nameOf(workspace, sight.id))
          if (ended === undefined) return unless(false, workspace, sight.id, `it was ${sight.state}, and is not in the database`)
          if (sight.state === "succeeded") {
            const same = sight.event === null || resultsOf(sight) === JSON.stringify(
              ended.results.map(({ change, id, version }) => [id, change, version])
            )
            return unless(ended.state === "succeeded" && same, workspace, sight.id, `it had succeeded, and is ${ended.state} or other`)
          }
          return unless(
            sight.state !== "failed" ||
              ended.state === "failed" && (sight.event === null || ended.failure === sight.event.failure) ||
              mayBeRetried(book.writes, workspace, sight.id, sight.told.askedAt, Infinity),
            workspace,
            sight.id,
            `it had failed, nobody retried it, and it is ${ended.state} ${ended.failure ?? ""}`
          )
        })
      )
  },
  {
    name: "versions-go-forward",
    promise: "The version of a memory that is seen later is never an older one.",
    check: ({ told }) => {
      const sights = told.flatMap((one) =>
        one.answer._tag === "Memory" ? [{ one, id: one.answer.id, version: one.answer.version }] : []
      )
      return [...Map.groupBy(sights, ({ id, one }) => nameOf(one.workspace, id)).values()].flatMap((seen) =>
        seen.flatMap((second) =>
          seen.flatMap((first) =>
            unless(
              !before(first.one, second.one) || second.version >= first.version,
              second.one.workspace,
              second.id,
              `version ${first.version} was seen, and then ${second.version}`
            )
          )
        )
      )
    }
  },
  {
    name: "balances-add-up",
    promise: "Every balance that was shown adds up, and neither what was issued nor what was consumed ever becomes less.",
    check: ({ told }) => {
      const sights = told.flatMap((one) => one.answer._tag === "Usage" ? [{ one, balances: one.answer }] : [])
      return [
        ...sights.flatMap(({ balances: { available, consumed, issued, reserved }, one }) =>
          unless(
            available + reserved + consumed === issued && Math.min(available, reserved, consumed) >= 0,
            one.workspace,
            "account",
            `${available} + ${reserved} + ${consumed} is not ${issued}`
          )
        ),
        ...sights.flatMap((second) =>
          sights.flatMap((first) =>
            first.one.workspace !== second.one.workspace || !before(first.one, second.one)
              ? []
              : (["issued", "consumed"] as const).flatMap((name) =>
                unless(
                  second.balances[name] >= first.balances[name],
                  second.one.workspace,
                  "account",
                  `${name} went from ${first.balances[name]} to ${second.balances[name]}`
                )
              )
          )
        )
      ]
    }
  }
]
