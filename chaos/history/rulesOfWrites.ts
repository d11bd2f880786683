/** What has to be true of commands: acknowledged ones are there, once; refused ones left nothing; nobody else's is. */
import { type Book, type Finding, nameOf, type Rule, unless, type Written } from "./book.ts"
import { before, type Result } from "./told.ts"

const isConflict = ({ answer }: Written): boolean => answer._tag === "Refused" && answer.code === "idempotency_conflict"

/** Whether it may have been carried out: acknowledged, or nobody knows. */
const mayStand = ({ answer }: Written): boolean => answer._tag === "Acknowledged" || answer._tag === "Unknown"

const forEachKey = (book: Book, check: (writes: ReadonlyArray<Written>, key: string) => ReadonlyArray<Finding>) =>
  [...book.byKey].flatMap(([key, writes]) => check(writes, key))

const same = (left: ReadonlyArray<Result>, right: ReadonlyArray<Result>): boolean =>
  JSON.stringify(left.map(inTurn)) === JSON.stringify(right.map(inTurn))

const inTurn = ({ change, id, version }: Result) => [id, change, version]

/** A text that the provider may have marked with the number of its call. */
const base = (text: string): string => text.replace(/ \[call \d+\]$/, "")

const kinds = { infer: "memory.infer", add: "memory.add", update: "memory.update", delete: "memory.delete" } as const

export const rulesOfWrites: ReadonlyArray<Rule> = [
  {
    // A manual retry of an operation that is live leaves it alone, and leaves its key free.
    name: "acknowledged-is-there",
    promise: "Every command that was acknowledged is in the database, under its key.",
    check: ({ holders, operations, writes }) =>
      writes.flatMap(({ answer, asked, workspace }) => {
        if (answer._tag !== "Acknowledged") return []
        const { eventId } = answer
        if (!operations.has(nameOf(workspace, eventId))) {
          return unless(false, workspace, eventId, "it was acknowledged, and is not in the database")
        }
        if (asked.keyHash === null || asked.kind === "retry") return []
        const holder = holders.get(nameOf(workspace, asked.keyHash))
        return unless(holder === eventId, workspace, eventId, `its key belongs to ${holder ?? "nothing"}`)
      })
  },
  {
    name: "one-key-one-event",
    promise: "Whoever repeats a command under its key is told of the same event, and no other command is.",
    check: (book) =>
      forEachKey(book, (writes, key) => {
        const events = new Set<string>()
        const intents = new Set<string>()
        for (const { answer, asked } of writes) {
          if (answer._tag !== "Acknowledged" || asked.kind === "retry" && book.holders.get(key) !== answer.eventId) continue
          events.add(answer.eventId)
          intents.add(asked.intent)
        }
        return [
          ...unless(events.size <= 1, writes[0]!.workspace, key, `it was acknowledged as ${[...events].join(", ")}`),
          ...unless(intents.size <= 1, writes[0]!.workspace, key, `${intents.size} different commands were acknowledged`)
        ]
      })
  },
  {
    name: "conflict-is-true",
    promise: "A conflict names the event that holds the key, and only another command under that key is one.",
    check: (book) =>
      forEachKey(book, (writes, key) =>
        writes.filter(isConflict).flatMap((write) => {
          const { answer, asked, workspace } = write
          const named = answer._tag === "Refused" ? answer.eventId : null
          const others = writes.filter((other) =>
            other.asked.intent !== asked.intent && mayStand(other) && other.askedAt < write.answeredAt
          )
          return [
            ...unless(named === (book.holders.get(key) ?? null), workspace, key, `a conflict named ${named}`),
            ...unless(others.length > 0, workspace, key, "a conflict with no other command")
          ]
        }))
  },
  {
    name: "refused-leaves-nothing",
    promise: "A key under which every request was refused is not taken.",
    check: (book) =>
      forEachKey(book, (writes, key) =>
        unless(
          writes.some(mayStand) || !book.holders.has(key),
          writes[0]!.workspace,
          key,
          "everything was refused, and the key is taken"
        ))
  },
  {
    name: "nothing-unasked",
    promise: "Every operation, and every memory, is there because somebody asked for it.",
    check: ({ byKey, ended, holders, memories, writes }) => {
      const keyed = new Set(holders.values())
      const texts = new Set(writes.map(({ asked, workspace }) => nameOf(workspace, asked.text ?? "")))
      return [
        ...[...holders].flatMap(([key, event]) =>
          unless(byKey.has(key), key.split("/")[0]!, event, "nobody asked under the key that it has")
        ),
        ...(["add", "update", "delete"] as const).flatMap((kind) =>
          [...new Set(ended.operations.map(({ workspace }) => workspace))].flatMap((workspace) => {
            const asked = writes.filter((write) =>
              write.workspace === workspace && write.asked.kind === kind && write.asked.keyHash === null && mayStand(write)
            ).length
            const made = ended.operations.filter((operation) =>
              operation.workspace === workspace && operation.kind === kinds[kind] && !keyed.has(operation.id)
            ).length
            return unless(made <= asked, workspace, kind, `${asked} may have been made without a key, and ${made} were`)
          })
        ),
        ...ended.operations.flatMap(({ id, kind, workspace }) =>
          unless(kind !== "memory.infer" || keyed.has(id), workspace, id, "it was inferred without a key")
        ),
        ...[...memories.values()].flatMap(({ id, text, workspace }) =>
          unless(text === null || texts.has(nameOf(workspace, base(text))), workspace, id, "nobody said what it says")
        )
      ]
    }
  },
  {
    name: "stored-as-told",
    promise: "What a finished write was told to have made is there, or was changed later by somebody who asked to.",
    check: ({ memories, operations, writes }) =>
      writes.flatMap(({ answer, asked, workspace }) => {
        if (answer._tag !== "Acknowledged" || answer.results === null) return []
        const ended = operations.get(nameOf(workspace, answer.eventId))
        return [
          ...unless(
            ended !== undefined && same(ended.results, answer.results),
            workspace,
            answer.eventId,
            "its results are others than it was told"
          ),
          ...answer.results.flatMap(({ change, id, version }) => {
            if (id === null || version === null || change === "none") return []
            const memory = memories.get(nameOf(workspace, id))
            if (memory === undefined) return unless(false, workspace, id, "it was stored, and is not in the database")
            return [
              ...unless(memory.version >= version, workspace, id, `version ${version} was told, and it is at ${memory.version}`),
              ...unless(
                memory.version !== version || memory.text === (change === "delete" ? null : asked.text),
                workspace,
                id,
                "it says something else than what was asked"
              )
            ]
          })
        ]
      })
  },
  {
    name: "sound-requests-are-served",
    promise: "Nobody with a good key is turned away, and nothing breaks: no 401, no 403, no 500.",
    check: ({ told }) =>
      told.flatMap(({ answer, client, workspace }) =>
        unless(
          answer._tag !== "Refused" || ![401, 403, 500].includes(answer.status),
          workspace,
          client,
          `it was told ${answer._tag === "Refused" ? `${answer.status} ${answer.code}` : ""}`
        )
      )
  },
  {
    name: "acknowledged-is-never-absent",
    promise: "An event is never denied after it was acknowledged, nor a memory after it was told of and while nobody deletes it.",
    check: (book) => [...absentEvents(book), ...absentMemories(book)]
  }
]

const absentEvents = ({ told, writes }: Book): ReadonlyArray<Finding> =>
  told.flatMap((denied) => {
    const { answer, asked, workspace } = denied
    if (answer._tag !== "Refused" || answer.status !== 404) return []
    const eventId = asked._tag === "Event" || asked._tag === "Cancel" || asked._tag === "Write" ? asked.eventId : null
    const known = writes.some((write) =>
      write.workspace === workspace && write.answer._tag === "Acknowledged" && write.answer.eventId === eventId &&
      before(write, denied)
    )
    return unless(eventId === null || !known, workspace, eventId ?? "", "it was acknowledged, and then denied")
  })

const absentMemories = ({ ended, told, writes }: Book): ReadonlyArray<Finding> =>
  told.flatMap((denied) => {
    const { answer, asked, workspace } = denied
    if (answer._tag !== "Refused" || answer.status !== 404) return []
    const memoryId = asked._tag === "Memory" || asked._tag === "Write" ? asked.memoryId : null
    const known = memoryId !== null && told.some((one) =>
      one.workspace === workspace && before(one, denied) && (
        one.answer._tag === "Memory" && one.answer.id === memoryId ||
        one.answer._tag === "Acknowledged" && one.answer.results?.some(({ change, id }) => id === memoryId && change !== "delete")
      )
    )
    const mayBeGone = writes.some((write) =>
      write.workspace === workspace && write.asked.kind === "delete" && write.asked.memoryId === memoryId &&
      write.askedAt < denied.answeredAt && mayStand(write)
    ) || ended.operations.some((operation) =>
      operation.workspace === workspace && operation.kind === "memory.infer" &&
      operation.results.some(({ change, id }) => change === "delete" && id === memoryId)
    )
    return unless(!known || mayBeGone, workspace, memoryId ?? "", "it was there, nobody deleted it, and it was denied")
  })
