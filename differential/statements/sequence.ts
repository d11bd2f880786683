/** A sequence of statements: who does what on which connection, in which order. All that a comparison is repeated from. */
import { Schema } from "effect"

const Id = Schema.Literals(["a", "b", "c", "d"])
const Code = Schema.NullOr(Schema.Literals(["x", "y"]))
const Home = Schema.Literals(["g", "h"])
const Name = Schema.Literals(["p", "q"])

/**
 * What a connection can do to two small tables. `things` have an id, a code that is theirs alone, a number, a time and
 * perhaps a home that has to exist. The numbers of things end at 3: most statements look for lower ones.
 */
export const Act = Schema.Union([
  Schema.Struct({ do: Schema.Literal("insert"), id: Id, code: Code, home: Schema.NullOr(Home) }),
  /** Inserts unless somebody has it: anything of it, its id, or its code. */
  Schema.Struct({ do: Schema.Literal("offer"), id: Id, code: Code, arbiter: Schema.Literals(["any", "id", "code"]) }),
  /** Inserts, or counts one on. */
  Schema.Struct({ do: Schema.Literal("upsert"), id: Id }),
  Schema.Struct({ do: Schema.Literal("count"), id: Id }),
  Schema.Struct({ do: Schema.Literal("recode"), id: Id, code: Code }),
  Schema.Struct({ do: Schema.Literal("delete"), ids: Schema.Array(Id) }),
  Schema.Struct({ do: Schema.Literal("lock"), ids: Schema.Array(Id), mode: Schema.Literals(["exclusive", "share"]) }),
  /** Locks what nobody else has, perhaps only what is due by `now()`. */
  Schema.Struct({ do: Schema.Literal("skip"), limit: Schema.Int, due: Schema.Boolean }),
  Schema.Struct({ do: Schema.Literal("read") }),
  /** Advisory locks. */
  Schema.Struct({ do: Schema.Literal("name"), names: Schema.Array(Name) }),
  /** How the clocks of the transaction and of the statement stand to each other. */
  Schema.Struct({ do: Schema.Literal("times") }),
  Schema.Struct({ do: Schema.Literal("home"), home: Home }),
  /** A thing and its home in one statement, the home last in the text. */
  Schema.Struct({ do: Schema.Literal("family"), id: Id, home: Home }),
  Schema.Struct({ do: Schema.Literal("commit") }),
  Schema.Struct({ do: Schema.Literal("rollback") }),
  /** Somebody gives up what this connection waits for. Nothing, unless it waits. */
  Schema.Struct({ do: Schema.Literal("cancel") })
])
export type Act = typeof Act.Type
export type Statement = Exclude<Act, Record<"do", "commit"> | Record<"do", "rollback"> | Record<"do", "cancel">>

export const Step = Schema.Struct({
  on: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
  act: Act,
  /** Its wait for a lock is over at once, if nobody waits when it begins. */
  hurried: Schema.optionalKey(Schema.Literal(true))
})
export type Step = typeof Step.Type

export const Sequence = Schema.Struct({
  kind: Schema.Literal("statements"),
  /** Where it comes from. */
  name: Schema.String,
  /** What it is about, in one sentence. */
  about: Schema.optionalKey(Schema.String),
  connections: Schema.Literals([2, 3]),
  steps: Schema.Array(Step).check(Schema.isMaxLength(100))
})
export type Sequence = typeof Sequence.Type

/** What is there before anybody does anything. */
export const things = [
  { id: "a", code: "x", n: 0, home: null },
  { id: "b", code: null, n: 1, home: "g" }
] as const
export const homes = ["g"] as const

/** A thing that has counted to this is not looked for any more. */
export const enough = 3
