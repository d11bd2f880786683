/**
 * What is wrong with the target and the headers of a request before anybody looks at what they ask. Whatever two readers
 * could read in two ways is refused, and not guessed.
 */
import type { HttpServerRequest } from "effect/http"
import { parametersAt } from "./Faults.ts"
import type { Fault } from "./Problems.ts"

/** What a problem says of a request, or null of one that can be read. */
export interface HeadFault {
  readonly detail: string
  readonly errors: ReadonlyArray<Fault>
}

const encoding = "is not valid percent-encoded UTF-8"

/** The first thing that is wrong with the head of `request`; null when nothing is. */
export const headFault = (request: HttpServerRequest.HttpServerRequest): HeadFault | null =>
  headersFault(request) ?? targetFault(request.url)

const headersFault = ({ source }: HttpServerRequest.HttpServerRequest): HeadFault | null => {
  if (!("rawHeaders" in source && "httpVersion" in source)) return null
  const hosts = countOf(source.rawHeaders, "host")
  // HTTP/1.1 demands it, also beside a whole URL, and proxies in between rely on it.
  if (hosts === 0 && source.httpVersion === "1.1") {
    return { detail: "A request of HTTP/1.1 names its host.", errors: [{ path: "Host", message: "is required" }] }
  }
  // Of several, node keeps the first and somebody else may keep the last.
  if (hosts > 1) return twice("Host")
  return countOf(source.rawHeaders, "authorization") > 1 ? twice("Authorization") : null
}

/** How many headers have this name. Names and values take turns. */
const countOf = (raw: unknown, name: string): number =>
  Array.isArray(raw) ? raw.filter((text, index) => index % 2 === 0 && String(text).toLowerCase() === name).length : 0

const twice = (name: string): HeadFault => ({
  detail: `A request has one ${name} header.`,
  errors: [{ path: name, message: "must be given once" }]
})

const targetFault = (url: string): HeadFault | null => {
  // A whole URL is a path by now, if it is one.
  if (/^https?:\/\//i.test(url)) {
    return { detail: "The target of the request is not a URL.", errors: [{ path: "", message: "is not a valid URL" }] }
  }
  if (isEncoded(url)) return null
  const [path, query] = halves(url)
  return isEncoded(path)
    ? { detail: `The query ${encoding}.`, errors: parametersAt(brokenNames(query), encoding) }
    : { detail: `The path ${encoding}.`, errors: [{ path: "", message: `the path ${encoding}` }] }
}

/** The path, and all behind it, where the router ends the path. */
const halves = (url: string): readonly [path: string, query: string] => {
  const path = url.split(/[?#;]/, 1)[0]!
  return [path, url.slice(path.length + 1)]
}

/** The names of the parameters that cannot be decoded; one whose name cannot be has none. */
const brokenNames = (query: string): ReadonlyArray<string> =>
  query.split("&").filter((pair) => !isEncoded(pair)).map((pair) => decoded(pair.split("=", 1)[0]!) ?? "")

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "))
  } catch {
    return undefined
  }
}

const isEncoded = (text: string): boolean => decoded(text) !== undefined
