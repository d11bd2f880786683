/** Vectors as the index compares them: unit length, so that cosine similarity is a dot product. */

/** The vector scaled to length 1; null when it has another dimension, a component that is not finite, or no length. */
export const unit = (vector: Float32Array, dimension: number): Float32Array | null => {
  if (vector.length !== dimension) return null
  let squares = 0
  for (let index = 0; index < dimension; index++) squares += vector[index]! * vector[index]!
  const scale = 1 / Math.sqrt(squares)
  return Number.isFinite(squares) && Number.isFinite(scale) ? vector.map((component) => component * scale) : null
}

/** The dot product of two vectors of one dimension. Four sums, so that the processor need not wait for the last one. */
export const dot = (a: Float32Array, b: Float32Array): number => {
  const tail = a.length & ~3
  let s0 = 0
  let s1 = 0
  let s2 = 0
  let s3 = 0
  for (let index = 0; index < tail; index += 4) {
    s0 += a[index]! * b[index]!
    s1 += a[index + 1]! * b[index + 1]!
    s2 += a[index + 2]! * b[index + 2]!
    s3 += a[index + 3]! * b[index + 3]!
  }
  for (let index = tail; index < a.length; index++) s0 += a[index]! * b[index]!
  return s0 + s1 + s2 + s3
}

/** Keeps the `limit` best scores of a stream, best first; of equals, the one that came first. */
export const best = <A>(limit: number) => {
  const kept: Array<{ readonly item: A; readonly score: number }> = []
  const offer = (item: A, score: number): void => {
    if (kept.length >= limit && (limit === 0 || score <= kept[limit - 1]!.score)) return
    let low = 0
    let high = kept.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (kept[middle]!.score >= score) low = middle + 1
      else high = middle
    }
    kept.splice(low, 0, { item, score })
    if (kept.length > limit) kept.pop()
  }
  return { kept: kept as ReadonlyArray<{ readonly item: A; readonly score: number }>, offer }
}
