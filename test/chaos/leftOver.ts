/** A process that makes a place, notes a child that looks like one of the service, and waits to be killed. */
import { Effect } from "effect"
import { spawn } from "node:child_process"
import * as Place from "../../chaos/place.ts"

const program = Effect.gen(function*() {
  const place = yield* Place.make
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "bin/indelible.mjs"], { stdio: "ignore" })
  place.note(child.pid!)
  process.send?.({ path: place.path, pid: child.pid })
  return yield* Effect.never
})

Effect.runFork(Effect.scoped(program))
