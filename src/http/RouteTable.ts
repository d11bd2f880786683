/** Which methods a path knows: what tells 405 from 404. Looked at only when no route matched. */
import { HttpApi } from "effect/http-api"
import { Api } from "./Api.ts"

/** Where the contract and its documentation are served, beside the contract itself. */
export const openApiPath = "/openapi.json"
export const docsPath = "/docs"

const routes: Array<{ readonly method: string; readonly segments: ReadonlyArray<string> }> = [
  { method: "GET", segments: openApiPath.split("/") },
  { method: "GET", segments: docsPath.split("/") }
]

HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    routes.push({ method: endpoint.method, segments: endpoint.path.split("/") })
  }
})

const matches = (template: ReadonlyArray<string>, path: ReadonlyArray<string>): boolean =>
  template.length === path.length
  && template.every((segment, index) => segment.startsWith(":") ? path[index] !== "" : segment === path[index])

/** The methods that the path of `url` is served with, sorted. */
export const allowedMethods = (url: string): ReadonlyArray<string> => {
  const segments = url.split(/[?#;]/, 1)[0]!.split("/")
  const methods = routes.filter((route) => matches(route.segments, segments)).map((route) => route.method)
  return [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].toSorted()
}
