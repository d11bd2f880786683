/** Random commands, and random spellings of one JSON value: other key order, white space, escapes and number forms. */
import { Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { type AddBody, Message } from "../../src/domain/Command.ts"
import { Text } from "../../src/domain/Ids.ts"
import { ScopeFilter } from "../../src/domain/Scope.ts"

/** One of these; what is named twice comes twice as often. */
export const oneOf = <const A>(...choices: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: choices.length - 1 }))).pipe(
    Arbitrary.map((index) => choices[index]!)
  )

/** A stream of numbers in [0, 1) that a seed names (mulberry32). */
export const streamOf = (seed: number): () => number => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

export const seeds = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_294_967_295 })))

const json = Schema.Union([
  Text,
  Schema.Int,
  Schema.Finite.check(Schema.isBetween({ minimum: -1_000, maximum: 1_000 })),
  Schema.Boolean,
  Schema.Null,
  Schema.Array(Schema.Union([Text, Schema.Int])),
  Schema.Record(Schema.String.check(Schema.isPattern(/^[a-zA-Z/~é ]{1,4}$/)), Schema.Union([Text, Schema.Boolean]))
])

export const metadata = Arbitrary.schema(Schema.Record(Schema.String.check(Schema.isPattern(/^[a-z/é]{1,3}$/)), json))

/** Bodies that the schema takes, with every optional field there or not. */
export const addBodies: Arbitrary.Arbitrary<AddBody> = Arbitrary.all({
  content: Arbitrary.schema(Schema.NullOr(Text)),
  messages: Arbitrary.array(Arbitrary.schema(Message), { minLength: 1, maxLength: 4 }),
  scope: Arbitrary.schema(ScopeFilter),
  infer: Arbitrary.schema(Schema.NullOr(Schema.Boolean)),
  metadata,
  hasMetadata: Arbitrary.schema(Schema.Boolean),
  at: Arbitrary.schema(Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_102_444_800_000 })))),
  instructions: Arbitrary.schema(Schema.NullOr(Text.check(Schema.isMaxLength(64))))
}).pipe(Arbitrary.map((parts) => ({
  ...(Object.keys(parts.scope).length === 0 ? { user_id: "ada" } : parts.scope),
  ...(parts.content === null
    ? { messages: parts.messages.map((message) => ({ ...message, content: `said: ${message.content}` })) }
    : { content: `said: ${parts.content}` }),
  ...(parts.infer === null ? {} : { infer: parts.infer }),
  ...(parts.hasMetadata ? { metadata: parts.metadata } : {}),
  ...(parts.at === null ? {} : { event_date: new Date(parts.at).toISOString() }),
  ...(parts.instructions === null ? {} : { instructions: parts.instructions })
})))

/** One of many texts that mean the same value. */
export const respell = (value: unknown, random: () => number): string => {
  const space = () => ["", "", " ", "\n", "\t  "][Math.floor(random() * 5)]!
  const list = (open: string, items: ReadonlyArray<string>, close: string) =>
    `${space()}${open}${space()}${items.join(`${space()},${space()}`)}${space()}${close}${space()}`
  if (typeof value === "string") return respellText(value, random)
  if (typeof value === "number") return respellNumber(value, random)
  if (Array.isArray(value)) return list("[", value.map((item) => respell(item, random)), "]")
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const entries = shuffle(Object.entries(value), random)
  const pairs = entries.map(([key, item]) =>
    `${respellText(key, random)}${space()}:${space()}${respell(item, random)}`
  )
  return list("{", pairs, "}")
}

export const shuffle = <A>(items: ReadonlyArray<A>, random: () => number): ReadonlyArray<A> =>
  items.map((item) => [random(), item] as const).toSorted(([a], [b]) => a - b).map(([, item]) => item)

const respellText = (text: string, random: () => number): string =>
  `"${
    Array.from({ length: text.length }, (_, index) => {
      const hex = text.charCodeAt(index).toString(16).padStart(4, "0")
      const unit = text[index]!
      const mustEscape = unit < " " || unit === "\"" || unit === "\\" || !unit.isWellFormed()
      return mustEscape || random() < 0.2 ? `\\u${random() < 0.5 ? hex : hex.toUpperCase()}` : unit
    }).join("")
  }"`

const respellNumber = (value: number, random: () => number): string => {
  const plain = JSON.stringify(value)
  if (!/^-?[1-9]\d{0,14}$/.test(plain)) return plain
  return [plain, `${plain}.0`, `${plain}e0`, `${plain}.00E+0`, `${plain}0e-1`][Math.floor(random() * 5)]!
}
