/** Completes the OpenAPI document with what schemas of strings cannot say: types, bounds, headers and their meaning. */
import { messagesMax } from "../domain/Command.ts"
import { scopeIdMaxLength, scopeKeys } from "../domain/Scope.ts"
import { examples } from "./ApiExamples.ts"
import { cursorMaxLength, pageDefault, pageMax, searchDefault, waitMaxSeconds } from "./Limits.ts"

interface Parameter {
  name: string
  in: string
  schema: object
  description?: string
}

interface Header {
  readonly description: string
  readonly schema: object
  readonly required?: boolean
}

const text = { type: "string" }
const only = (value: string) => ({ type: "string", enum: [value] })
const wholeSeconds = { type: "string", pattern: "^[0-9]+$" }

const parameters: Record<string, Omit<Parameter, "in">> = {
  "header idempotency-key": {
    name: "Idempotency-Key",
    schema: { type: "string", minLength: 1, maxLength: 257, pattern: "^[\\x21-\\x7e]+$" },
    description: "Names one intent: made once, repeated with every retry. 1 to 255 visible ASCII characters, bare or "
      + "in double quotes. Required for an inferred add, optional and fully enforced elsewhere."
  },
  "header if-match": {
    name: "If-Match",
    schema: { type: "string", pattern: "^(\\*|\"[1-9][0-9]*\")$" },
    description: "The version that was read, as `ETag` gave it. Without it, or with `*`, any version is changed."
  },
  "header prefer": {
    name: "Prefer",
    schema: text,
    description: "`wait=N` holds the answer for up to N seconds, until the event is terminal. Others are ignored."
  },
  "header x-request-id": {
    name: "X-Request-Id",
    schema: { type: "string", pattern: "^[A-Za-z0-9_-]{1,64}$" },
    description: "Your own id for this request, for the answer and the logs. Any other value is replaced by a new one."
  },
  "path id": { name: "id", schema: { type: "string", format: "uuid" } },
  "query limit": {
    name: "limit",
    schema: { type: "integer", minimum: 1, maximum: pageMax, default: pageDefault },
    description: "Rows of one page."
  },
  "query cursor": {
    name: "cursor",
    schema: { type: "string", maxLength: cursorMaxLength },
    description: "`next_cursor` of the page before. Opaque."
  },
  "query wait": {
    name: "wait",
    schema: { type: "integer", minimum: 0, maximum: waitMaxSeconds, default: 0 },
    description: "Seconds to wait for a terminal event."
  },
  "query metadata": {
    name: "metadata",
    schema: { type: "string", contentMediaType: "application/json" },
    description: "A JSON object. Every pair in it must be in the memory's metadata."
  },
  ...Object.fromEntries(scopeKeys.map((key) => [`query ${key}`, {
    name: key,
    schema: { type: "string", minLength: 1, maxLength: scopeIdMaxLength }
  }]))
}

/** Taken by every route. */
const requestId = { name: "x-request-id", in: "header", required: false }

const headers: Record<string, Header> = {
  etag: { description: "The version, as an entity tag.", schema: text },
  location: { description: "The event that owns the outcome.", schema: { type: "string", format: "uri-reference" } },
  "retry-after": { description: "Seconds to stay away.", schema: wholeSeconds },
  "idempotent-replayed": {
    description: "There when this key already named this very command.",
    schema: only("true")
  },
  "preference-applied": { description: "The preference that was honoured.", schema: text },
  "x-request-id": { description: "The id sent in `X-Request-Id`, or a new one.", schema: text, required: true },
  "cache-control": { description: "Answers are never stored.", schema: only("no-store"), required: true },
  "www-authenticate": { description: "The scheme to use.", schema: only("Bearer"), required: true }
}

const canonical: Record<string, string> = { etag: "ETag", "www-authenticate": "WWW-Authenticate" }

const canonicalName = (name: string): string =>
  canonical[name] ?? name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase())

/** The headers that every answer with this status has. */
const common = (status: string): ReadonlyArray<string> => [
  "x-request-id",
  "cache-control",
  ...(status === "401" ? ["www-authenticate"] : []),
  ...(status === "503" ? ["retry-after"] : [])
]

const describeResponse = (status: string, response: { headers?: Record<string, Header> }): void => {
  const declared = response.headers ?? {}
  const all = { ...declared, ...Object.fromEntries(common(status).map((name) => [name, headers[name]])) }
  response.headers = Object.fromEntries(
    Object.entries(all).map(([name, header]) => [canonicalName(name), {
      required: header?.required ?? (name === "retry-after" && status === "503"),
      ...headers[name]
    }])
  ) as Record<string, Header>
}

/** What every problem document has, whether or not it is what a client branches on. */
const describeProblems = (schemas: Record<string, any>): void => {
  for (const schema of Object.values(schemas)) {
    if (schema.properties?.type?.enum?.[0]?.startsWith("urn:indelible:problem:") !== true) continue
    delete schema.properties.instance
    schema.required = [...new Set([...schema.required, "title", "status"])]
  }
}

const scopeRequired = { anyOf: scopeKeys.map((key) => ({ required: [key] })) }

const describeBodies = (schemas: Record<string, any>): void => {
  for (const schema of [schemas.AddMemory, schemas.Search]) {
    for (const key of scopeKeys) Object.assign(schema.properties[key], { minLength: 1, maxLength: scopeIdMaxLength })
  }
  const add = schemas.AddMemory
  Object.assign(add.properties.messages, { minItems: 1, maxItems: messagesMax })
  Object.assign(add.properties.infer, { default: true })
  add.properties.event_date.anyOf[0].description =
    "An ISO 8601 date, or date and time with Z or an offset, within the years 0000 to 9999 in UTC."
  add.allOf = [scopeRequired, { oneOf: [{ required: ["messages"] }, { required: ["content"] }] }]
  schemas.EditMemory.minProperties = 1
  Object.assign(schemas.Search.properties.limit, { default: searchDefault })
}

/** The document, completed. Mutates a copy that nobody else holds. */
export const describe = (spec: Record<string, any>): Record<string, any> => {
  // Problems are classes with defaults, whose encoded form the generator names apart: on the wire there is only one.
  const complete = JSON.parse(JSON.stringify(spec).replace(/(\w+)Encoded"/g, "$1\""))
  for (const path of Object.values<Record<string, any>>(complete.paths)) {
    for (const operation of Object.values(path)) {
      operation.parameters = [...operation.parameters, requestId].map((parameter: Parameter) => ({
        ...parameter,
        ...parameters[`${parameter.in} ${parameter.name}`]
      }))
      for (const [status, response] of Object.entries<any>(operation.responses)) describeResponse(status, response)
      for (const content of Object.values<any>(operation.requestBody?.content ?? {})) {
        content.examples = examples[content.schema.$ref.split("/").at(-1)]
      }
    }
  }
  describeBodies(complete.components.schemas)
  describeProblems(complete.components.schemas)
  // As it is registered: the page offers a name and a password for any spelling that it does not know.
  complete.components.securitySchemes.bearer.scheme = "bearer"
  return complete
}
