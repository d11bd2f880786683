/** Serves memories: reads the request, asks one service, answers. */
import { Effect, Result } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { AddBody, normaliseAdd, UpdateBody } from "../domain/Command.ts"
import { decodeBody } from "../domain/Decode.ts"
import { MemoryId } from "../domain/Ids.ts"
import { Metadata } from "../domain/Memory.ts"
import { pickScope } from "../domain/Scope.ts"
import * as StrictJson from "../domain/StrictJson.ts"
import { Commands } from "../services/Commands.ts"
import { Memories } from "../services/Memories.ts"
import { Settings } from "../services/Settings.ts"
import { Api } from "./Api.ts"
import { CurrentKey } from "./Authentication.ts"
import * as Body from "./Body.ts"
import { cursors, pageSize } from "./Cursor.ts"
import * as Headers from "./Headers.ts"
import { searchDefault } from "./Limits.ts"
import { SearchBody } from "./MemoriesApi.ts"
import { etag, memoryView, searchHitView, versionView } from "./MemoryView.ts"
import { MalformedRequest } from "./Problems.ts"
import { accepted, changed, stored } from "./Receipt.ts"
import { fail, refuse } from "./Refuse.ts"
import * as Waiting from "./Waiting.ts"

const memories = cursors("memories", MemoryId)
const readAdd = Body.reader(AddBody)
const readUpdate = Body.reader(UpdateBody)
const readSearch = Body.reader(SearchBody)

const decodeMetadata = decodeBody(Metadata)

/** A metadata filter of a list: a JSON object in a query parameter. */
const metadataFilter = (text: string | undefined): Effect.Effect<Metadata, MalformedRequest> => {
  if (text === undefined) return Effect.succeed({})
  return Result.match(Result.flatMap(Result.mapError(StrictJson.parse(text), () => null), decodeMetadata), {
    onSuccess: Effect.succeed,
    onFailure: () =>
      fail((request_id) =>
        new MalformedRequest({
          request_id,
          detail: "The metadata filter could not be read.",
          errors: [{ path: "metadata", message: "must be a JSON object, such as {\"topic\":\"travel\"}" }]
        })
      )
  })
}

export const layer = HttpApiBuilder.group(
  Api,
  "memories",
  Effect.fn(function*(handlers) {
    const commands = yield* Commands
    const reads = yield* Memories
    const waiting = yield* Waiting.make
    const { waitMaxSeconds } = yield* Settings

    return handlers
      .handleRaw("add", Effect.fnUntraced(function*({ headers, request }) {
        const { workspaceId } = yield* CurrentKey
        const key = yield* Headers.idempotencyKey(headers["idempotency-key"])
        const command = normaliseAdd(yield* readAdd(request))
        if (command.kind === "memory.add") {
          return stored(yield* refuse(commands.add(workspaceId, key, command)))
        }
        const receipt = yield* refuse(commands.infer(workspaceId, yield* Headers.required(key), command))
        const seconds = Headers.preferredWait(headers.prefer, waitMaxSeconds)
        if (seconds === null) return accepted(receipt)
        const status = yield* waiting.status({ workspaceId, id: receipt.eventId }, receipt.status, seconds)
        return accepted({ ...receipt, status }, `wait=${seconds}`)
      }))
      .handle("list", Effect.fnUntraced(function*({ query }) {
        const { workspaceId } = yield* CurrentKey
        const limit = pageSize(query.limit)
        const before = yield* memories.after(query.cursor)
        const metadata = yield* metadataFilter(query.metadata)
        const page = { workspaceId, scope: pickScope(query), metadata, before, limit: limit + 1 }
        const rows = yield* refuse(reads.list(page))
        return memories.page(rows, limit, { key: (memory) => memory.id, view: memoryView })
      }))
      .handleRaw("search", Effect.fnUntraced(function*({ request }) {
        const { workspaceId } = yield* CurrentKey
        const { limit, metadata, query, ...scope } = yield* readSearch(request)
        const answer = yield* refuse(
          reads.search({ workspaceId, scope, metadata: metadata ?? {}, query, limit: limit ?? searchDefault })
        )
        return { data: answer.hits.map(searchHitView), semantic: answer.semantic }
      }))
      .handle("get", Effect.fnUntraced(function*({ params }) {
        const { workspaceId } = yield* CurrentKey
        const memory = yield* refuse(reads.get({ workspaceId, id: params.id }))
        return HttpApiSchema.withHeaders({ body: memoryView(memory), headers: { etag: etag(memory.version) } })
      }))
      .handle("history", Effect.fnUntraced(function*({ params }) {
        const { workspaceId } = yield* CurrentKey
        const versions = yield* refuse(reads.history({ workspaceId, id: params.id }))
        return { data: versions.map(versionView), next_cursor: null }
      }))
      .handleRaw("update", Effect.fnUntraced(function*({ headers, params, request }) {
        const { workspaceId } = yield* CurrentKey
        const key = yield* Headers.idempotencyKey(headers["idempotency-key"])
        const expectedVersion = yield* Headers.ifMatch(headers["if-match"])
        const { memory = null, metadata = null } = yield* readUpdate(request)
        const command = { kind: "memory.update" as const, memoryId: params.id, text: memory, metadata, expectedVersion }
        return changed(params.id, yield* refuse(commands.update(workspaceId, key, command)))
      }))
      .handle("delete", Effect.fnUntraced(function*({ headers, params }) {
        const { workspaceId } = yield* CurrentKey
        const key = yield* Headers.idempotencyKey(headers["idempotency-key"])
        const expectedVersion = yield* Headers.ifMatch(headers["if-match"])
        const command = { kind: "memory.delete" as const, memoryId: params.id, expectedVersion }
        return changed(params.id, yield* refuse(commands.delete(workspaceId, key, command)))
      }))
  })
)
