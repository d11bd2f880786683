/** What has to be true of failures: those that only a caller can bring about were asked for, and none is our forgetting. */
import { type Book, type Rule, unless } from "./book.ts"

/** Every failure that somebody was shown, and those of the end. */
const failuresIn = ({ ended, told }: Book) => [
  ...told.flatMap(({ answer, answeredAt, workspace }) =>
    answer._tag === "Event" ? [{ workspace, id: answer.event.id, failure: answer.event.failure, at: answeredAt }] : []
  ),
  ...ended.operations.map(({ failure, id, workspace }) => ({ workspace, id, failure, at: Infinity }))
]

export const rulesOfFailures: ReadonlyArray<Rule> = [
  {
    name: "cancelled-because-asked",
    promise: "What is cancelled was cancelled by somebody who asked for it.",
    check: (book) =>
      failuresIn(book).filter(({ failure }) => failure === "cancelled").flatMap(({ at, id, workspace }) =>
        unless(
          book.told.some(({ asked, askedAt, workspace: its }) =>
            asked._tag === "Cancel" && asked.eventId === id && its === workspace && askedAt < at
          ),
          workspace,
          id,
          "it was cancelled, and nobody asked"
        )
      )
  },
  {
    // A run is shorter than any retention, and its clients purge nothing.
    name: "nothing-is-forgotten-early",
    promise: "What was accepted is kept for as long as it is needed: no input is over before its time.",
    check: (book) =>
      failuresIn(book).flatMap(({ failure, id, workspace }) =>
        unless(failure !== "input_expired", workspace, id, "what was said is gone, and it was still needed")
      )
  }
]
