/**
 * Full-text search, roughly as Postgres does it for English: words without their endings, the syntax of web searches, and
 * the same measure of how well a text fits. Enough to tell what a search may find, and no more.
 */
import type { Memory } from "../../domain/Memory.ts"

/** The longest query that is looked at, in characters. */
const queryMaxLength = 1_000

const ignored = new Set(
  ("a about after all also am an and any are as at be because been but by can did do does for from had has have he her " +
    "here him his how i if in into is it its just me more my no nor not of off on once only or our out over own same she " +
    "so some such than that the their them then there these they this to too under until up very was we were what when " +
    "where which while who whom why will with you your").split(" ")
)

const stem = (word: string): string => word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word

/** The words of a text that count, in their order. */
const wordsOf = (text: string): ReadonlyArray<string> =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !ignored.has(word)).map(stem)

/** One word, or several that must follow each other. */
interface Term {
  readonly words: ReadonlyArray<string>
  readonly excluded: boolean
}

/** Alternatives, each of which is everything that must be true. */
const parse = (query: string): ReadonlyArray<ReadonlyArray<Term>> => {
  const alternatives: Array<Array<Term>> = [[]]
  for (const [token] of query.slice(0, queryMaxLength).matchAll(/-?"[^"]*"?|[^\s"]+/g)) {
    const words = wordsOf(token)
    if (/^or$/i.test(token)) alternatives.push([])
    else if (words.length > 0) alternatives.at(-1)!.push({ words, excluded: token.startsWith("-") })
  }
  return alternatives.filter((terms) => terms.length > 0)
}

const has = (text: ReadonlyArray<string>, words: ReadonlyArray<string>): boolean =>
  text.some((_, place) => words.every((word, index) => text[place + index] === word))

/** Of memories given newest first, those that hold any word that is asked for, the best first. */
export const ranked = (query: string, memories: ReadonlyArray<Memory>): ReadonlyArray<Memory> => {
  const alternatives = parse(query)
  const wanted = new Set(alternatives.flat().flatMap(({ excluded, words }) => excluded ? [] : words))
  if (wanted.size === 0) return []
  const found = memories.flatMap((memory) => {
    const text = wordsOf(memory.text ?? "")
    const rank = rankOf(text, wanted)
    if (rank === 0) return []
    const asWritten = alternatives.some((terms) => terms.every(({ excluded, words }) => has(text, words) !== excluded))
    return [{ memory, asWritten, rank }]
  })
  return found
    .toSorted((a, b) => Number(b.asWritten) - Number(a.asWritten) || b.rank - a.rank)
    .map(({ memory }) => memory)
}

/** The first time that a word is said counts most, each further one less. */
const rankOf = (text: ReadonlyArray<string>, wanted: ReadonlySet<string>): number => {
  const counts = new Map<string, number>()
  let rank = 0
  for (const word of text) {
    if (!wanted.has(word)) continue
    const count = (counts.get(word) ?? 0) + 1
    counts.set(word, count)
    rank += 1 / (count * count)
  }
  return rank
}
