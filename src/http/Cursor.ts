/** Where a list goes on: opaque to callers, bound to the list that gave it out, refused when it is anything else. */
import { Effect, Option, Result, Schema } from "effect"
import { Base64Url } from "effect/encoding"
import { pageDefault } from "./Limits.ts"
import { MalformedRequest } from "./Problems.ts"
import { fail } from "./Refuse.ts"

export type List = "memories" | "events" | "transfers"

const Cursor = Schema.fromJsonString(Schema.Struct({ v: Schema.Literal(1), list: Schema.String, after: Schema.String }))
const decodeCursor = Schema.decodeUnknownOption(Cursor)

/** One list: how its cursors name the last row that was seen. */
export const cursors = <A>(list: List, id: Schema.Codec<A, string>) => {
  const decodeId = Schema.decodeUnknownOption(id)
  const encodeId = Schema.encodeSync(id)
  const encode = (after: A): string => Base64Url.encode(JSON.stringify({ v: 1, list, after: encodeId(after) }))
  const decode = (text: string): Option.Option<A> =>
    Result.getSuccess(Base64Url.decodeString(text)).pipe(
      Option.flatMap(decodeCursor),
      Option.filter((cursor) => cursor.list === list),
      Option.flatMap((cursor) => decodeId(cursor.after))
    )

  return {
    /** What the caller saw last; null at the beginning. */
    after: (cursor: string | undefined): Effect.Effect<A | null, MalformedRequest> =>
      cursor === undefined ? Effect.succeed(null) : Option.match(decode(cursor), {
        onSome: Effect.succeed,
        onNone: () => invalid
      }),
    /** A page of at most `limit` out of rows that were asked for with one more. */
    page: <Row, View>(
      rows: ReadonlyArray<Row>,
      limit: number,
      { key, view }: { readonly key: (row: Row) => A; readonly view: (row: Row) => View }
    ): { readonly data: ReadonlyArray<View>; readonly next_cursor: string | null } => {
      const last = rows.length > limit ? rows[limit - 1] : undefined
      return { data: rows.slice(0, limit).map(view), next_cursor: last === undefined ? null : encode(key(last)) }
    }
  }
}

const invalid = fail((request_id) =>
  new MalformedRequest({
    request_id,
    detail: "The cursor is not one that this list gave out. Start again without it.",
    errors: [{ path: "cursor", message: "must be the next_cursor of a page of this list" }]
  })
)

/** How many rows a page has. */
export const pageSize = (limit: number | undefined): number => limit ?? pageDefault
