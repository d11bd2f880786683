/**
 * Start-time fair queueing in one ordering column. Each operation carries a virtual start tag; the smallest tag goes
 * first. A workspace with a million operations holds a million growing tags, and the first operation of another starts
 * at the clock, which is the tag last served: it goes next.
 * Source: Goyal, Vin, Cheng, "Start-time Fair Queuing", SIGCOMM 1996.
 */

/** Start tags for `count` operations of one workspace, and the workspace's virtual time after them. */
export const startTags = (
  clock: number,
  workspaceTime: number,
  count: number
): { readonly tags: ReadonlyArray<number>; readonly workspaceTime: number } => {
  const first = Math.max(clock, workspaceTime)
  return { tags: Array.from({ length: count }, (_, index) => first + index), workspaceTime: first + count }
}

/**
 * The tag of an operation that becomes the head of its lane, as the `place`th (from 1) of its workspace at once. What was
 * accepted long ago carries a tag that the clock has passed: with it, each lane of a deep backlog would go before a
 * workspace that has just come.
 */
export const handedTag = (clock: number, place: number, accepted: number): number => Math.max(accepted, clock + place)

/** The clock after serving these tags: it never goes back. */
export const advanceClock = (clock: number, served: ReadonlyArray<number>): number =>
  served.reduce((latest, tag) => Math.max(latest, tag), clock)
