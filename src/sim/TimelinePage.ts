/** A run as one file of HTML: nothing is loaded from anywhere, and nothing that a run says becomes markup. */
import { faultKinds } from "./Faults.ts"
import type { Timeline } from "./Timeline.ts"

/** The parts of the page that are files of their own, beside this one: see `assetNames`. */
export interface Assets {
  readonly css: string
  readonly scripts: ReadonlyArray<string>
}

/** Of the folder `timeline`: the style, and the scripts in the order in which they need each other. */
export const assetNames = { css: "page.css", scripts: ["draw.js", "overview.js", "list.js", "page.js"] } as const

export interface PageOptions {
  readonly title: string
  /** What is known of the run beside what happened: its seed, its commit, the command that repeats it. */
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  readonly assets: Assets
}

/** No browser is told to fetch anything: the policy forbids it. */
const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

export const page = (timeline: Timeline, { assets, facts, title }: PageOptions): string => {
  const data = JSON.stringify({ ...timeline, facts, kinds: faultKinds })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<title>${escape(title)}</title>
<style>
${assets.css}</style>
<script type="application/json" id="run">${inScript(data)}</script>
<body>
<script type="module">
${assets.scripts.map(joined).join("\n")}</script>
</html>
`
}

/** Scripts that import each other, as one. */
const joined = (script: string): string => script.replace(/^import .*\n/gm, "").replace(/^export /gm, "")

/** JSON that no parser of HTML takes for an end of the script. */
const inScript = (json: string): string =>
  json.replaceAll("<", "\\u003c").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")
