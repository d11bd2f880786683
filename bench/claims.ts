/** What a claim costs when little is pending and when a million operations are, in every way they can be spread. */
import { Effect, Layer } from "effect"
import { type LaneRef, WorkspaceId } from "../src/domain/Ids.ts"
import { type Claimed, Claims, leaseOf } from "../src/services/Claims.ts"
import { Settlement } from "../src/services/Settlement.ts"
import { type Backlog, fill } from "./backlog.ts"
import { fresh } from "./server.ts"
import { accept, api, open, ports } from "./service.ts"
import { type Bench, now, quantile, type Sample, type Trial } from "./trial.ts"

const batch = 100
const owner = "bench"
const busy = WorkspaceId.make("busy")
const small = 1_000

const services = (url: string) =>
  Layer.mergeAll(api, Claims.layer.pipe(Layer.provideMerge(Settlement.layer))).pipe(Layer.provideMerge(ports(url)))

type Services = Layer.Success<ReturnType<typeof services>>

const givenBack = (claimed: ReadonlyArray<Claimed>) =>
  claimed.map(({ operation }) => ({ _tag: "Release" as const, lease: leaseOf(operation), lane: operation }))

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const from = now()
    return Effect.map(effect, (value) => ({ value, ms: now() - from }))
  })

const quantiles = (figure: string, times: ReadonlyArray<number>): ReadonlyArray<Sample> => [
  { figure: `${figure}, p50`, unit: "ms", value: quantile(times, 0.5) },
  { figure: `${figure}, p99`, unit: "ms", value: quantile(times, 0.99) }
]

/** Claims a batch and gives it back, so that the next one meets the same backlog. */
const claiming = Effect.fnUntraced(function*(figure: string, count: number) {
  const claims = yield* Claims
  const settlement = yield* Settlement
  const times: Array<number> = []
  for (let n = 0; n < count + 5; n++) {
    const { ms, value } = yield* timed(claims.claim(owner, batch))
    if (n >= 5) times.push(ms)
    if (value.length === 0) return yield* Effect.die("there was nothing to claim")
    yield* settlement.endAll(givenBack(value))
  }
  return quantiles(figure, times)
}, Effect.orDie)

/** Ends the head of the one lane: the commit finds the next one, however many wait. */
const handingOver = Effect.fnUntraced(function*(figure: string, count: number) {
  const claims = yield* Claims
  const settlement = yield* Settlement
  const times: Array<number> = []
  for (let n = 0; n < count; n++) {
    const [head] = yield* claims.claim(owner, batch)
    if (head === undefined) return yield* Effect.die("the lane was not handed over")
    const lane: LaneRef = head.operation
    const { ms } = yield* timed(
      settlement.endAll([{ _tag: "Fail", lease: leaseOf(head.operation), lane, failure: "input_expired", retryAfterMs: null }])
    )
    times.push(ms)
  }
  return quantiles(figure, times)
}, Effect.orDie)

/** A busy workspace keeps its backlog while another adds one operation: how many claims until it is that one's turn. */
const turns = Effect.fnUntraced(function*(round: number) {
  const claims = yield* Claims
  const other = WorkspaceId.make(`other-${round}`)
  yield* open(other)
  const served = yield* claims.claim(owner, batch)
  yield* accept(0, "ana", other)
  const taken = [...served]
  for (let turn = 1; turn <= 100; turn++) {
    const { ms, value } = yield* timed(claims.claim(owner, batch))
    taken.push(...value)
    const place = value.findIndex(({ operation }) => operation.workspaceId === other)
    if (place < 0) continue
    yield* (yield* Settlement).endAll(givenBack(taken.filter(({ operation }) => operation.workspaceId === busy)))
    return [
      { figure: "one operation of another workspace: claims until it is served", unit: "", value: turn },
      { figure: "one operation of another workspace: its place in that claim", unit: "", value: place + 1 },
      { figure: "one operation of another workspace: that claim", unit: "ms", value: ms }
    ]
  }
  return yield* Effect.die("the other workspace was not served within a hundred claims")
}, Effect.orDie)

const count = (n: number) => n.toLocaleString("en")

/** Each backlog is made once; its trials come back to it. */
const against = Effect.fnUntraced(function*(
  backlog: Omit<Backlog, "workspaceId">,
  measure: (round: number) => Effect.Effect<ReadonlyArray<Sample>, never, Services>
) {
  const database = yield* fresh("migrated")
  yield* fill(database, { ...backlog, workspaceId: busy }).pipe(Effect.provide(ports(database.url)))
  let round = 0
  return {
    system: `indelible, ${count(backlog.operations)} pending`,
    run: Effect.flatMap(Layer.build(services(database.url)), (context) =>
      Effect.provideContext(Effect.suspend(() => measure(++round)), context))
  } satisfies Trial
})

export const bench: Bench = Effect.fnUntraced(function*({ backlog, claims }) {
  const spread = (operations: number) =>
    against({ operations, lanes: operations / 2 }, (round) =>
      Effect.zipWith(
        claiming(`claim of ${batch}, spread over lanes`, claims),
        turns(round),
        (one, other) => [...one, ...other]
      ))
  const oneLane = (operations: number) =>
    against({ operations, lanes: 1 }, () =>
      Effect.zipWith(
        claiming("claim, one lane holds all", claims),
        handingOver("end of the head, one lane holds all", claims),
        (one, other) => [...one, ...other]
      ))
  return yield* Effect.all([spread(small), spread(backlog), oneLane(small), oneLane(backlog)])
})
