/** English from the first person into the third: "I don't eat my greens" becomes "User doesn't eat their greens". */
import nlp from "compromise"

/** A word with its part of speech, and the punctuation and space around it. */
export interface Term {
  readonly text: string
  readonly word: string
  readonly pre: string
  readonly post: string
  readonly tags: ReadonlySet<string>
}

/** A clause, word by word. */
export type Terms = ReadonlyArray<Term>

interface ParsedSentence {
  readonly terms: ReadonlyArray<{
    readonly text: string
    readonly pre: string
    readonly post: string
    readonly tags: ReadonlyArray<string>
  }>
}

export const parse = (text: string): Terms => {
  const sentences: ReadonlyArray<ParsedSentence> = nlp(text).json()
  const terms: Array<Term> = []
  for (const { post, pre, tags, text } of sentences.flatMap(({ terms }) => terms)) {
    const last = terms.at(-1)
    // The second part of a contraction has no text; what follows the contraction is there.
    if (text === "" && last !== undefined) terms[terms.length - 1] = { ...last, post: last.post + post }
    else terms.push({ text, word: text.toLowerCase(), pre, post, tags: new Set(tags) })
  }
  return terms
}

export const textOf = (terms: Terms): string => terms.map(({ post, pre, text }) => pre + text + post).join("").trim()

const set = (words: string): ReadonlySet<string> => new Set(words.split(" "))

export const isSubject = ({ word }: Term): boolean => word === "i" || word === "we"
export const isOwner = ({ word }: Term): boolean => word === "my" || word === "our"

const adverbs = set(
  "also just still both all really usually often always never currently only recently actually mostly sometimes now " +
    "then once absolutely generally normally typically hardly rarely seldom even already definitely totally finally"
)
const unchanging = set(
  "will would can could may might must shall should won't wouldn't can't cannot couldn't shouldn't mustn't " +
    "did didn't had hadn't got quit"
)
const sameInPast = set("read put cut hit let set cost hurt shut split spread bet")
const pastTime =
  /\b(yesterday|ago|last (night|week|weekend|month|year|summer|winter|spring|autumn|fall)|in (19|20)\d\d)\b/i
const irregular = new Map([
  ["am", "is"],
  ["are", "is"],
  ["was", "was"],
  ["were", "was"],
  ["have", "has"],
  ["do", "does"],
  ["don't", "doesn't"],
  ["haven't", "hasn't"],
  ["aren't", "isn't"],
  ["weren't", "wasn't"]
])
const plural = new Map([["am", "are"], ["was", "were"], ["wasn't", "weren't"]])

export const isBase = ({ tags }: Term): boolean => tags.has("Infinitive") && !tags.has("PastTense")
export const isPast = ({ tags, word }: Term): boolean => tags.has("PastTense") && !tags.has("Copula") && word !== "been"
/** Whether a word can be the verb of a clause. */
export const isFinite = (term: Term): boolean =>
  irregular.has(term.word) || unchanging.has(term.word) ||
  (term.tags.has("Verb") && !term.tags.has("Gerund") && !term.tags.has("Particle"))
const isAdverb = ({ tags, word }: Term): boolean => adverbs.has(word) || (tags.has("Adverb") && !tags.has("Verb"))

/** The place of the verb whose subject is at `at`; -1 where the grammar is not understood. */
export const verbOf = (terms: Terms, at: number): number => {
  let place = at + 1
  while (place < terms.length && isAdverb(terms[place]!)) place++
  const verb = terms[place]
  return verb !== undefined && /^[a-z']+$/.test(verb.word) && !/[,;:]/.test(terms[place - 1]!.post) ? place : -1
}

/** Whether this can be a clause. The word after a subject is its verb, whatever the tagger thinks of it. */
export const hasVerb = (terms: Terms): boolean => {
  const subject = terms.findIndex(isSubject)
  return (subject >= 0 && verbOf(terms, subject) > 0) || terms.some(isFinite)
}

/** The third person singular of a verb in its base form. */
const withS = (verb: string): string => {
  if (/(s|x|z|ch|sh|[^aeiou]o|^go|^do)$/.test(verb)) return `${verb}es`
  return /[^aeiou]y$/.test(verb) ? `${verb.slice(0, -1)}ies` : `${verb}s`
}

const agree = (verb: Term, terms: Terms): string => {
  const known = irregular.get(verb.word)
  if (known !== undefined) return known
  const isPast = verb.tags.has("PastTense") || (verb.word.endsWith("ed") && !isBase(verb))
  if (isPast || unchanging.has(verb.word)) return verb.text
  return sameInPast.has(verb.word) && pastTime.test(textOf(terms)) ? verb.text : withS(verb.word)
}

/** The verbs of a list that begins with the one at `verb`: "swim, run and ski". */
const listedAfter = (terms: Terms, verb: number): ReadonlyArray<number> => {
  const listed: Array<number> = []
  for (let place = verb; place < terms.length;) {
    const joined = /^(and|or)$/.test(terms[place + 1]?.word ?? "")
    const next = place + (joined ? 2 : 1)
    if ((!joined && !terms[place]!.post.includes(",")) || terms[next] === undefined || !isBase(terms[next])) break
    listed.push(next)
    if (joined) break
    place = next
  }
  return listed
}

/** What is said of a user who is the subject already, and of one who is not. */
const pronouns: ReadonlyMap<string, readonly [they: string, user: string]> = new Map([
  ["me", ["them", "User"]],
  ["us", ["them", "User"]],
  ["my", ["their", "User's"]],
  ["our", ["their", "User's"]],
  ["mine", ["theirs", "User's"]],
  ["ours", ["theirs", "User's"]],
  ["myself", ["themselves", "User"]],
  ["ourselves", ["themselves", "User"]]
])

const written = (terms: Terms, as: "they" | "user"): string =>
  terms.map(({ post, pre, text, word }) => {
    const [they, user] = pronouns.get(word) ?? [text, text]
    return pre + (as === "they" ? they : user) + post
  }).join("")

/** As a sentence: it begins with a capital and ends with one full stop. */
export const sentence = (text: string): string => {
  const bare = text.trim().replace(/[\s.,;:!?]+$/, "")
  return `${bare.charAt(0).toUpperCase()}${bare.slice(1)}.`
}

/**
 * What the clause says, about the user: named once where the user is the subject, and "they" from then on. Null where
 * no verb is found for a subject, and for what does not speak of its speaker.
 */
export const thirdPerson = (terms: Terms): string | null => {
  const [first] = terms
  if (first === undefined) return null
  const and = terms.findIndex(({ word }, place) => word === "and" && terms[place + 1]?.word === "i")
  if (isOwner(first) && and > 1 && terms.length > and + 2 && !terms.slice(0, and).some(isFinite)) {
    return sentence(`User and their ${textOf(terms.slice(1, and))} ${written(terms.slice(and + 2), "they")}`)
  }
  const subject = terms.findIndex(isSubject)
  const asUser = subject >= 0 && !isOwner(first) && !terms.slice(0, subject).some(isFinite)
  if (subject < 0 && !terms.some(({ word }) => pronouns.has(word))) return null
  const changed = [...terms]
  const change = (place: number, text: string) => {
    changed[place] = { ...changed[place]!, text, word: text }
  }
  for (const [place, term] of terms.entries()) {
    if (!isSubject(term)) continue
    const at = verbOf(terms, place)
    if (at < 0) return null
    const verb = terms[at]!
    if (asUser && place > subject) {
      change(place, "they")
      change(at, plural.get(verb.word) ?? verb.text)
      continue
    }
    change(place, "User")
    change(at, agree(verb, terms))
    if (isBase(verb)) for (const listed of listedAfter(terms, at)) change(listed, withS(terms[listed]!.word))
  }
  return sentence(written(changed, asUser ? "they" : "user").replace(/\bUser User\b/g, "User that User"))
}
