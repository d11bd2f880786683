/** The request in hand, as logs and problems name it. Made by the edge; the router and the key check fill it in. */
import { Context } from "effect"
import type { ApiKey } from "../services/ApiKeys.ts"

export interface RequestInfo {
  /** Equal to `X-Request-Id`. */
  readonly id: string
  /** The template that matched, such as `/v1/memories/:id`: never the path that was sent. */
  route: string | null
  key: ApiKey | null
}

export const CurrentRequest = Context.Reference<RequestInfo>("indelible/http/CurrentRequest", {
  defaultValue: () => ({ id: "none", route: null, key: null })
})
