/** The fewest of many things that still do what all of them did. */

/**
 * Delta debugging: leaves out halves, then quarters, then eighths, until no single one can be left out. `items` are
 * those of the best so far, which may be fewer than were asked for.
 */
export const fewer = <A>(
  items: () => ReadonlyArray<A>,
  take: (some: ReadonlyArray<A>) => boolean,
  partsMax = Infinity
): void => {
  let parts = 2
  while (items().length > 0) {
    const all = items()
    parts = Math.min(parts, all.length)
    let found = false
    // The last ones first: what comes before them stays as it was.
    for (let part = parts - 1; part >= 0 && !found; part--) {
      const begin = Math.floor(part * all.length / parts)
      const end = Math.floor((part + 1) * all.length / parts)
      found = take([...all.slice(0, begin), ...all.slice(end)])
    }
    if (found) parts = Math.max(2, parts - 1)
    else if (parts === all.length || 2 * parts > partsMax) return
    else parts *= 2
  }
}
