/** A sequence of port operations: which program runs on which connection, and when each may make its next call. */
import { Schema } from "effect"

/** Operations by name. All but the last belong to the first workspace. */
export const Op = Schema.Literals(["a", "b", "c", "z"])
export type Op = typeof Op.Type
export const Workspace = Schema.Literals(["w", "v"])
export type Workspace = typeof Workspace.Type
export const Lane = Schema.Literals(["k", "l"])
export type Lane = typeof Lane.Type
const Ops = Schema.Array(Op)
const Key = Schema.NullOr(Schema.Literals(["x", "y"]))
const Text = Schema.Literals(["p", "q"])
const Change = Schema.Literals(["add", "update", "delete", "none"])
export type Change = typeof Change.Type
const Version = Schema.NullOr(Schema.Int)
const Limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 }))

/** One thing that is done in a transaction without any program: one call of a port, or a few that belong together. */
export const Call = Schema.Union([
  Schema.Struct({ call: Schema.Literal("lock"), ops: Ops }),
  Schema.Struct({ call: Schema.Literal("lanes"), workspace: Workspace, lanes: Schema.Array(Lane) }),
  Schema.Struct({ call: Schema.Literal("accounts"), workspaces: Schema.Array(Workspace) }),
  Schema.Struct({ call: Schema.Literal("memories"), of: Ops }),
  Schema.Struct({ call: Schema.Literal("claimable"), limit: Limit }),
  Schema.Struct({ call: Schema.Literal("expired"), limit: Limit }),
  Schema.Struct({ call: Schema.Literal("insert"), op: Op, lane: Lane, ready: Schema.Boolean, key: Key }),
  Schema.Struct({ call: Schema.Literal("keys"), op: Op, key: Schema.Literals(["x", "y"]) }),
  /** Reads an operation, and saves what becomes of it, without a lock. */
  Schema.Struct({ call: Schema.Literal("save"), ops: Ops, as: Schema.Literals(["claimed", "failed", "released", "reopened"]) }),
  Schema.Struct({ call: Schema.Literal("redact"), ops: Ops }),
  Schema.Struct({ call: Schema.Literal("plans"), ops: Ops }),
  Schema.Struct({ call: Schema.Literal("ready"), workspace: Workspace, lanes: Schema.Array(Lane) }),
  Schema.Struct({ call: Schema.Literal("clock"), to: Schema.Int }),
  Schema.Struct({ call: Schema.Literal("reserve"), op: Op, no: Schema.Int }),
  /** Locks the open authorizations, and ends them. */
  Schema.Struct({ call: Schema.Literal("settle"), ops: Ops, as: Schema.Literals(["charge", "refund"]) }),
  /** Ends an authorization that may not be open, with nothing locked. */
  Schema.Struct({ call: Schema.Literal("refund"), op: Op, no: Schema.Int }),
  Schema.Struct({ call: Schema.Literal("grant"), workspace: Workspace, reference: Text }),
  Schema.Struct({ call: Schema.Literal("write"), of: Ops, change: Schema.Literals(["add", "update", "delete"]), version: Schema.Int }),
  Schema.Struct({ call: Schema.Literal("projections"), limit: Limit }),
  Schema.Struct({ call: Schema.Literal("finish"), of: Ops, version: Schema.Int }),
  Schema.Struct({ call: Schema.Literal("postpone"), of: Ops, version: Schema.Int, attempts: Schema.Int }),
  Schema.Struct({ call: Schema.Literal("announce"), ops: Ops }),
  Schema.Struct({ call: Schema.Literal("prune"), limit: Limit }),
  Schema.Struct({ call: Schema.Literal("read"), op: Op })
])
export type Call = typeof Call.Type

/** What a connection can be asked for. Programs are those of the service. */
export const Act = Schema.Union([
  /** Lets the program that runs there make this many calls, or as many until it has to wait. */
  Schema.Struct({ do: Schema.Literal("go"), calls: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 })) }),
  Schema.Struct({
    do: Schema.Literal("accept"),
    all: Schema.Array(Schema.Struct({ op: Op, lane: Lane, key: Schema.Literals(["x", "y", "u"]), text: Text }))
  }),
  /** A short lease is over at once. */
  Schema.Struct({ do: Schema.Literal("claim"), limit: Limit, lease: Schema.Literals(["short", "long"]) }),
  Schema.Struct({ do: Schema.Literal("take over"), limit: Limit }),
  Schema.Struct({ do: Schema.Literal("renew"), ops: Ops, stale: Schema.Boolean }),
  Schema.Struct({ do: Schema.Literal("freeze"), op: Op, stale: Schema.Boolean, change: Change }),
  Schema.Struct({ do: Schema.Literal("commit"), ops: Ops, stale: Schema.Boolean, change: Change }),
  Schema.Struct({
    do: Schema.Literal("end"),
    ops: Ops,
    stale: Schema.Boolean,
    how: Schema.Literals(["fail", "fail later", "fail for good", "release", "exhaust", "cancel"])
  }),
  Schema.Struct({ do: Schema.Literal("retry"), op: Op, key: Key }),
  Schema.Struct({ do: Schema.Literal("purge"), op: Op }),
  Schema.Struct({ do: Schema.Literal("sweep") }),
  Schema.Struct({ do: Schema.Literal("grant"), workspace: Workspace, amount: Schema.Int, reference: Text }),
  Schema.Struct({ do: Schema.Literal("add"), op: Op, lane: Lane, key: Key, text: Text }),
  Schema.Struct({ do: Schema.Literal("edit"), op: Op, of: Op, key: Key, text: Text, version: Version }),
  Schema.Struct({ do: Schema.Literal("remove"), op: Op, of: Op, key: Key, version: Version }),
  Schema.Struct({ do: Schema.Literal("project"), limit: Limit, how: Schema.Literals(["finish", "postpone", "nothing"]) }),
  Schema.Struct({ do: Schema.Literal("look"), op: Op }),
  Schema.Struct({ do: Schema.Literal("transaction"), calls: Schema.Array(Call), end: Schema.Literals(["commit", "rollback"]) })
])
export type Act = typeof Act.Type
export type Program = Exclude<Act, Record<"do", "go">>

export const Step = Schema.Struct({ on: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 })), act: Act })
export type Step = typeof Step.Type

export const Sequence = Schema.Struct({
  kind: Schema.Literal("ports"),
  name: Schema.String,
  about: Schema.optionalKey(Schema.String),
  connections: Schema.Literals([2, 3]),
  steps: Schema.Array(Step).check(Schema.isMaxLength(200))
})
export type Sequence = typeof Sequence.Type

export const workspaces = ["w", "v"] as const
/** What each workspace has in the beginning. */
export const credits = 5n
