/** One Postgres cluster on disk: made whole or not at all, and told apart from whatever else may have taken its process id. */
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { EmbeddedPostgresFailed, enterable, type PostgresBinaries, type ServerUser } from "./PostgresBinaries.ts"

/** The superuser of a cluster, and the only role in it. */
export const role = "indelible"

export interface PostgresCluster {
  /** The directory that Postgres owns. */
  readonly data: string
  readonly password: string
  readonly log: string
  readonly user: ServerUser
  /** How the server is told its data directory. */
  readonly dataArgument: string
}

/** A server that runs on a cluster. */
export interface Postmaster {
  readonly pid: number
  readonly port: number
  readonly status: string
}

/** What a server process gets from us: none of our environment, and a working directory that it can always reach. */
export const spawnOptions = (cluster: Pick<PostgresCluster, "data" | "user">) => ({
  cwd: cluster.data,
  env: { LC_ALL: "C", TZ: "UTC", PATH: process.env.PATH ?? "" },
  ...(cluster.user === undefined ? {} : { uid: cluster.user.uid, gid: cluster.user.gid })
})

/**
 * Opens the cluster of this data directory, and makes it first if there is none. It is built beside its place and
 * renamed into it, so that a crash in the middle, or a second process, leaves one whole cluster.
 */
export const open = (options: {
  readonly dataDir: string
  readonly user: ServerUser
  readonly binaries: PostgresBinaries
  readonly durable: boolean
}): Effect.Effect<PostgresCluster, EmbeddedPostgresFailed> =>
  Effect.try({
    try: () => {
      const home = Path.join(options.dataDir, "postgres")
      if (!Fs.existsSync(home)) create(home, options)
      const data = Path.join(home, "data")
      const major = Fs.readFileSync(Path.join(data, "PG_VERSION"), "utf8").trim()
      if (major !== options.binaries.major) {
        throw new EmbeddedPostgresFailed({
          reason: "wrong_version",
          message: `${data} was made by Postgres ${major}, and this release brings Postgres ${options.binaries.major}: ` +
            "dump it with the release that made it, and restore it into a new data directory."
        })
      }
      return {
        data,
        password: Fs.readFileSync(Path.join(home, "password"), "utf8").trim(),
        log: Path.join(home, "server.log"),
        user: options.user,
        dataArgument: dataArgument(data, options.user)
      }
    },
    catch: (cause) =>
      cause instanceof EmbeddedPostgresFailed ? cause : new EmbeddedPostgresFailed({
        reason: "unreachable",
        message: `The data directory ${options.dataDir} cannot be used: ${cause instanceof Error ? cause.message : "unknown"}`
      })
  })

/** A directory below one that the server's user cannot enter (a private home) is still its working directory. */
const dataArgument = (data: string, user: ServerUser): string =>
  process.platform === "linux" && !enterable(data, user) ? "/proc/self/cwd" : data

/** The user that owns an existing cluster; it stays the same when user ids change between images. */
export const owner = (dataDir: string): ServerUser => {
  const stat = Fs.statSync(Path.join(dataDir, "postgres", "data"), { throwIfNoEntry: false })
  return stat === undefined || stat.uid === 0 ? undefined : { name: "its owner", uid: stat.uid, gid: stat.gid }
}

const create = (home: string, options: Parameters<typeof open>[0]): void => {
  for (const name of Fs.readdirSync(options.dataDir)) {
    const pid = /^postgres\.new-(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !alive(Number(pid))) Fs.rmSync(Path.join(options.dataDir, name), { recursive: true })
  }
  const pending = `${home}.new-${process.pid}`
  const data = Path.join(pending, "data")
  const password = Path.join(pending, "password")
  Fs.rmSync(pending, { recursive: true, force: true })
  Fs.mkdirSync(data, { recursive: true, mode: 0o700 })
  Fs.chmodSync(pending, options.user === undefined ? 0o700 : 0o711)
  Fs.writeFileSync(password, `${Crypto.randomBytes(32).toString("base64url")}\n`, { mode: 0o600 })
  if (options.user !== undefined) {
    for (const path of [data, password]) Fs.chownSync(path, options.user.uid, options.user.gid)
  }
  const run = spawnSync(options.binaries.initdb, [
    `--pgdata=${dataArgument(data, options.user)}`,
    `--username=${role}`,
    "--pwfile=../password",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-instructions",
    ...(options.durable ? [] : ["--no-sync"])
  ], { ...spawnOptions({ data, user: options.user }), encoding: "utf8" })
  try {
    if (run.status !== 0) {
      throw new Error(`initdb failed: ${run.error?.message ?? run.stderr.trim().split("\n").at(-1) ?? ""}`)
    }
    Fs.renameSync(pending, home)
    const parent = Fs.openSync(options.dataDir, "r")
    Fs.fsyncSync(parent)
    Fs.closeSync(parent)
  } catch (cause) {
    Fs.rmSync(pending, { recursive: true, force: true })
    if (!Fs.existsSync(home)) throw cause
  }
}

/** The server that runs on this cluster, as its lock file tells; undefined when it is gone, whatever the file says. */
export const postmaster = (cluster: PostgresCluster): Postmaster | undefined => {
  const path = Path.join(cluster.data, "postmaster.pid")
  if (!Fs.existsSync(path)) return undefined
  const lines = Fs.readFileSync(path, "utf8").split("\n")
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0 || !alive(pid)) return undefined
  if (isPostmasterOf(cluster, pid)) return { pid, port: Number(lines[3]), status: (lines[7] ?? "").trim() }
  // Somebody else has this process id now. Postgres cannot know that, and would refuse to start.
  Fs.rmSync(path, { force: true })
  return undefined
}

export const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return cause instanceof Error && "code" in cause && cause.code === "EPERM"
  }
}

const isPostmasterOf = (cluster: PostgresCluster, pid: number): boolean => {
  try {
    return process.platform === "linux"
      ? Fs.readlinkSync(`/proc/${pid}/cwd`) === Fs.realpathSync(cluster.data)
      : execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).includes(cluster.data)
  } catch {
    return false
  }
}
