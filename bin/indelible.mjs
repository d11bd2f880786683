#!/usr/bin/env node
// Plain JavaScript, so that any Node can say which one is needed: the service itself is TypeScript that Node 24 runs.
const [major] = process.versions.node.split(".")
if (Number(major) < 24) {
  console.error(`Indelible needs Node 24 or newer; this is ${process.versions.node}. "npm start" uses the right one.`)
  process.exit(1)
}
const tools = new Map([["admin", "../src/admin.ts"], ["audit", "../src/audit.ts"]])
await import(tools.get(process.argv[2]) ?? "../src/main.ts")
