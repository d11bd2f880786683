#!/usr/bin/env node
// Plain JavaScript, so that any Node can say which one is needed: the service itself is TypeScript that Node 24 runs.
import { existsSync, readFileSync } from "node:fs"
import * as Util from "node:util"

const [major] = process.versions.node.split(".")
if (Number(major) < 24) {
  console.error(`Indelible needs Node 24 or newer; this is ${process.versions.node}. "npm start" uses the right one.`)
  process.exit(1)
}
// What the environment says already stands, even when it says nothing.
if (existsSync(".env")) {
  try {
    // Some editors put a mark in front of the first name.
    const said = Util.parseEnv(readFileSync(".env", "utf8").replace(/^\uFEFF/, ""))
    for (const [name, value] of Object.entries(said)) process.env[name] ??= value
  } catch {
    console.error("indelible: .env cannot be read: it has to be a file that this user may read, or not to be there")
    // To the audit 1 means that it found something.
    process.exit(process.argv[2] === "audit" ? 3 : 1)
  }
}
const tools = new Map([["admin", "../src/admin.ts"], ["audit", "../src/audit.ts"]])
await import(tools.get(process.argv[2]) ?? "../src/main.ts")
