/** The contract of memories: add, read, list, search, edit and delete. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AddBody, UpdateBody } from "../domain/Command.ts"
import { MemoryId, Text } from "../domain/Ids.ts"
import { Metadata } from "../domain/Memory.ts"
import { scopeFields } from "../domain/Scope.ts"
import { Authentication, operation } from "./Authentication.ts"
import { queryMaxLength, searchMax } from "./Limits.ts"
import { MemoryView, SearchHitView, VersionView } from "./MemoryView.ts"
import {
  absent,
  badBody,
  IdempotencyKeyRequired,
  InsufficientCreditProblem,
  keyed,
  VersionConflictProblem
} from "./Problems.ts"
import { Accepted, Finished, FinishedBefore, FinishedNowOrBefore } from "./Receipt.ts"
import { pageOf, pageQuery, scopeQuery } from "./Wire.ts"

const key = { "idempotency-key": Schema.optionalKey(Schema.String) } as const
const precondition = { "if-match": Schema.optionalKey(Schema.String) } as const
const params = { id: MemoryId } as const
const changeHeaders = {
  etag: Schema.optionalKey(Schema.String),
  "idempotent-replayed": Schema.optionalKey(Schema.Literal("true"))
} as const

/** The body of a search. */
export const SearchBody = Schema.Struct({
  query: Text.check(
    Schema.makeFilter((text: string) => text.trim() !== "", { message: "must not be blank" }),
    Schema.isMaxLength(queryMaxLength)
  ),
  ...scopeFields,
  metadata: Schema.optionalKey(Metadata),
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: searchMax })))
})

const add = HttpApiEndpoint.post("add", "/v1/memories", {
  headers: { ...key, prefer: Schema.optionalKey(Schema.String) },
  payload: AddBody.annotate({ identifier: "AddMemory" }),
  success: [
    Accepted,
    HttpApiSchema.WithHeaders(Finished.pipe(HttpApiSchema.status(201)), { location: Schema.String }),
    HttpApiSchema.WithHeaders(FinishedBefore.pipe(HttpApiSchema.status(200)), {
      location: Schema.String,
      "idempotent-replayed": Schema.Literal("true")
    })
  ],
  error: [...badBody, ...keyed, IdempotencyKeyRequired, InsufficientCreditProblem]
}).annotateMerge(operation(
  "memories:write",
  "Remember",
  "With `infer` true (the default) a model extracts what is worth remembering: the answer is always 202, and the event "
    + "at `Location` owns the outcome. `Prefer: wait=N` waits for that first, without changing what was accepted. "
    + "With `infer` false each message is stored verbatim: 201, or 200 when the key was used before."
))

const list = HttpApiEndpoint.get("list", "/v1/memories", {
  query: { ...scopeQuery, metadata: Schema.optionalKey(Schema.String), ...pageQuery },
  success: pageOf(MemoryView, "MemoryPage")
}).annotateMerge(operation(
  "memories:read",
  "List memories",
  "Live memories, newest first. Every filter that is given must match."
))

const get = HttpApiEndpoint.get("get", "/v1/memories/:id", {
  params,
  success: HttpApiSchema.WithHeaders(MemoryView, { etag: Schema.String }),
  error: absent
}).annotateMerge(operation(
  "memories:read",
  "Read a memory",
  "`ETag` is the version: send it as `If-Match` to change exactly what was read."
))

const history = HttpApiEndpoint.get("history", "/v1/memories/:id/history", {
  params,
  success: pageOf(VersionView, "MemoryHistory"),
  error: absent
}).annotateMerge(operation(
  "memories:read",
  "Read the history of a memory",
  "Every version, oldest first, in one page. Also for a deleted memory, without its texts."
))

const update = HttpApiEndpoint.patch("update", "/v1/memories/:id", {
  params,
  headers: { ...key, ...precondition },
  payload: UpdateBody.annotate({ identifier: "EditMemory" }),
  success: HttpApiSchema.WithHeaders(FinishedNowOrBefore, changeHeaders),
  error: [...badBody, ...absent, ...keyed, VersionConflictProblem]
}).annotateMerge(operation(
  "memories:write",
  "Edit a memory",
  "What is absent stays; `metadata` replaces the whole object. With `If-Match` only that version is changed; "
    + "a repeat under the same idempotency key is recognised before the version is looked at."
))

const remove = HttpApiEndpoint.delete("delete", "/v1/memories/:id", {
  params,
  headers: { ...key, ...precondition },
  success: HttpApiSchema.WithHeaders(FinishedNowOrBefore, changeHeaders),
  error: [...absent, ...keyed, VersionConflictProblem]
}).annotateMerge(operation(
  "memories:write",
  "Delete a memory",
  "Erases the text of every version. With `If-Match` only if the memory is still at that version. Deleting what is "
    + "deleted already changes nothing: `event_id` is the event that did it, and `replayed` is false. Only with an "
    + "idempotency key whose first commit was not acknowledged to us may `replayed` be true: the key was stored by then."
))

const search = HttpApiEndpoint.post("search", "/v1/memories/search", {
  payload: SearchBody.annotate({ identifier: "Search" }),
  success: Schema.Struct({
    data: Schema.Array(SearchHitView),
    semantic: Schema.Boolean.annotate({
      description: "False when vectors did not take part: the answer is lexical only."
    })
  }).annotate({ identifier: "SearchAnswer" }),
  error: badBody
}).annotateMerge(operation(
  "memories:read",
  "Search memories",
  "Vectors and words together, best first, within the scope and metadata given. Finds what was committed "
    + "before the call, projected or not."
))

export class MemoriesApi extends HttpApiGroup.make("memories")
  .add(add, list, search, get, history, update, remove)
  .middleware(Authentication)
  .annotateMerge(OpenApi.annotations({ description: "What is remembered." }))
{}
