/** Where a run keeps its files. Whatever becomes of this process, its children end and the files of a sound run go. */
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

export interface Place {
  readonly path: string
  /** Notes a child process, so that it ends even if this process is killed. */
  readonly note: (pid: number) => void
  /** All that were noted. */
  readonly noted: () => ReadonlyArray<number>
  /** The files stay when the scope closes. */
  keep: boolean
}

export const make: Effect.Effect<Place, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const path = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-chaos-"))
    Fs.chmodSync(path, 0o711)
    const pids = Path.join(path, "pids")
    Fs.writeFileSync(pids, "")
    watch(path)
    return {
      path,
      note: (pid) => Fs.appendFileSync(pids, `${pid}\n`),
      noted: () => Fs.readFileSync(pids, "utf8").trim().split("\n").map(Number),
      keep: false
    } satisfies Place
  }),
  (place) =>
    Effect.sync(() => {
      // The watcher finds nothing to do where this file is gone.
      Fs.rmSync(Path.join(place.path, "pids"))
      if (!place.keep) Fs.rmSync(place.path, { recursive: true, force: true })
    })
)

/**
 * A killed process tears nothing down. So somebody waits for this one to be gone, however it goes, and ends what is left:
 * processes of the service that were noted, and the database server by its own file.
 */
const watch = (path: string): void => {
  const script = `cat >/dev/null
    [ -f "$0/pids" ] || exit 0
    while read -r pid; do
      case "$(ps -o command= -p "$pid")" in *bin/indelible.mjs*) kill -KILL "$pid" ;; esac
    done <"$0/pids"
    kill -QUIT "$(head -n 1 "$0/postgres/data/postmaster.pid")"
    sleep 1
    rm -rf "$0"`
  spawn("sh", ["-c", script, path], { detached: true, stdio: ["pipe", "ignore", "ignore"] }).unref()
}
