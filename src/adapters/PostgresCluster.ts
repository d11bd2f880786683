/** One Postgres cluster on disk: made whole or not at all, and not taken for running when its process id is reused. */
import { Effect } from "effect"
import { execFileSync, spawnSync } from "node:child_process"
import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { makeDirectory, unusable } from "../directories.ts"
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

interface Place {
  readonly dataDir: string
  readonly user: ServerUser
}

interface OpenOptions extends Place {
  readonly binaries: PostgresBinaries
  readonly durable: boolean
}

const home = (dataDir: string) => Path.join(dataDir, "postgres")

/** Why there is no cluster in this data directory, for the operator. */
export const unreachable = (dataDir: string, what: string) => (cause: unknown): EmbeddedPostgresFailed =>
  cause instanceof EmbeddedPostgresFailed
    ? cause
    : new EmbeddedPostgresFailed({ reason: "unreachable", message: unusable(dataDir, what, cause) })

/**
 * Makes the data directory if it is not there, and says who runs the server in it. Where root hands over to another
 * user, an existing cluster stays with its owner: user ids change between images, files do not.
 */
export const place = (given: string, user: ServerUser): Effect.Effect<Place, EmbeddedPostgresFailed> =>
  Effect.try({
    try: () => {
      // The server has a working directory of its own: a relative path would be another one there.
      const dataDir = Path.resolve(given)
      makeDirectory(dataDir, user === undefined ? 0o700 : 0o711)
      const owner = Fs.statSync(Path.join(home(dataDir), "data"), { throwIfNoEntry: false })
      return user === undefined || owner === undefined || owner.uid === 0
        ? { dataDir, user }
        : { dataDir, user: { name: "its owner", uid: owner.uid, gid: owner.gid } }
    },
    catch: unreachable(given, "it cannot be made")
  })

/**
 * Opens the cluster of this data directory, and makes it first if there is none. It is built beside its place and
 * renamed into it, so that a crash in the middle, or a second process, leaves one whole cluster.
 */
export const open = (options: OpenOptions): Effect.Effect<PostgresCluster, EmbeddedPostgresFailed> =>
  Effect.try({
    try: () => {
      const data = Path.join(home(options.dataDir), "data")
      if (!Fs.existsSync(data)) create(options)
      const major = Fs.readFileSync(Path.join(data, "PG_VERSION"), "utf8").trim()
      if (major !== options.binaries.major) throw wrongVersion(data, major, options.binaries.major)
      return {
        data,
        password: Fs.readFileSync(Path.join(home(options.dataDir), "password"), "utf8").trim(),
        log: Path.join(home(options.dataDir), "server.log"),
        user: options.user,
        dataArgument: dataArgument(data, options.user)
      }
    },
    catch: unreachable(options.dataDir, "its database cannot be made or read")
  })

const wrongVersion = (data: string, made: string, brings: string) =>
  new EmbeddedPostgresFailed({
    reason: "wrong_version",
    message: `${data} was made by Postgres ${made}, and this release brings Postgres ${brings}: ` +
      "dump it with the release that made it, and restore it into a new data directory."
  })

/** A directory below one that the server's user cannot enter (a private home) is still its working directory. */
const dataArgument = (data: string, user: ServerUser): string =>
  process.platform === "linux" && !enterable(data, user) ? "/proc/self/cwd" : data

const create = (options: OpenOptions): void => {
  for (const name of Fs.readdirSync(options.dataDir)) {
    const pid = /^postgres\.new-(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !alive(Number(pid))) Fs.rmSync(Path.join(options.dataDir, name), { recursive: true })
  }
  const pending = `${home(options.dataDir)}.new-${process.pid}`
  Fs.rmSync(pending, { recursive: true, force: true })
  try {
    fill(pending, options)
    Fs.renameSync(pending, home(options.dataDir))
    const parent = Fs.openSync(options.dataDir, "r")
    Fs.fsyncSync(parent)
    Fs.closeSync(parent)
  } catch (cause) {
    Fs.rmSync(pending, { recursive: true, force: true })
    if (!Fs.existsSync(Path.join(home(options.dataDir), "data"))) throw cause
  }
}

const fill = (pending: string, options: OpenOptions): void => {
  const data = Path.join(pending, "data")
  const password = Path.join(pending, "password")
  makeDirectory(data, 0o700)
  Fs.chmodSync(pending, options.user === undefined ? 0o700 : 0o711)
  Fs.writeFileSync(password, `${Crypto.randomBytes(32).toString("base64url")}\n`, { mode: 0o600 })
  if (options.user !== undefined) {
    for (const path of [data, password]) Fs.chownSync(path, options.user.uid, options.user.gid)
  }
  for (const characterType of characterTypes) {
    const complaint = initdb(data, characterType, options)
    if (complaint === undefined) return
    if (!complaint.includes("locale")) throw new Error(complaint)
  }
  throw new Error("initdb found no locale that it can use")
}

/** What full-text search takes for a letter. The first that this system has; collation does not depend on it. */
const characterTypes = ["C.UTF-8", "en_US.UTF-8", "C"]

const initdb = (data: string, characterType: string, { binaries, durable, user }: OpenOptions): string | undefined => {
  const run = spawnSync(binaries.initdb, [
    `--pgdata=${dataArgument(data, user)}`,
    `--username=${role}`,
    "--pwfile=../password",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    `--lc-ctype=${characterType}`,
    "--no-instructions",
    ...(durable ? [] : ["--no-sync"])
  ], { ...spawnOptions({ data, user }), encoding: "utf8" })
  if (run.status === 0) return undefined
  const lines = run.error === undefined ? run.stderr.trim().split("\n") : [`initdb: ${run.error.message}`]
  return lines.find((line) => /error|FATAL/.test(line)) ?? lines.at(-1) ?? "initdb failed"
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
