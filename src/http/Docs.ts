/** The documentation page: one document with everything in it, that loads nothing and may load nothing. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { Api } from "./Api.ts"
import { docsPath } from "./RouteTable.ts"

const policy = [
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

const confined = HttpRouter.middleware((page) =>
  Effect.map(page, HttpServerResponse.setHeader("content-security-policy", policy))
)

const scalar = {
  withDefaultFonts: false,
  defaultOpenAllTags: true,
  authentication: { preferredSecurityScheme: "bearer" },
  // Options of the page that its types do not name: whatever would lead away from this host is off.
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true }
}

export const layer = HttpApiScalar.layer(Api, { path: docsPath, scalar }).pipe(Layer.provide(confined.layer))
