/** What a fact does to what is known already: repeats it, replaces it, ends it, or, in doubt, none of these. */
import { parse, thirdPerson } from "./LocalGrammar.ts"

/** A memory, as far as it can be compared. */
export interface Meaning {
  readonly text: string
  /** Whose fact it is: the user's, or that of one of the user's people and things. */
  readonly subject: string
  /** The stems of the words that carry meaning. */
  readonly words: ReadonlySet<string>
  readonly negative: boolean
  /** What can have one value only, and the value. */
  readonly relation: { readonly key: string; readonly value: ReadonlySet<string> } | null
}

const stopWords = new Set(
  ("user user's i my we our a an the is am are was were be been being has have had do does did don't doesn't didn't " +
    "isn't wasn't haven't hasn't not never no longer anymore any more at in on to of for with from and or as that " +
    "this their theirs them they it its now currently really also just still very so recently actually finally there " +
    "who which will would about").split(" ")
)
const timeWords = new Set(
  "last next this month months week weeks year years day days ago today yesterday tomorrow morning since new old"
    .split(" ")
)

const stem = (word: string): string => {
  const bare = word.replace(/'s$/, "")
  const root = bare.replace(/ies$/, "y").replace(/([^s])s$/, "$1").replace(/(?<=.{3})(?:ing|ed)$/, "")
  return root.replace(/([bdgmnprt])\1$/, "$1").replace(/(?<=.{2})e$/, "")
}

const wordsOf = (text: string, without: ReadonlySet<string> = new Set()): ReadonlySet<string> => {
  const spelled = text.toLowerCase().replaceAll("favourite", "favorite").replaceAll("colour", "color")
  const words = (spelled.match(/[\p{L}\p{N}@.+'-]+/gu) ?? []).map((word) => word.replace(/^[.'-]+|[.'-]+$/g, ""))
  return new Set(words.filter((word) => word !== "" && !stopWords.has(word) && !without.has(word)).map(stem))
}

const attributes = "name|first name|middle name|last name|surname|nickname|age|birthday|date of birth|email|" +
  "email address|phone|phone number|address|home address|job|job title|title|employer|company|occupation|profession|" +
  "hometown|nationality|native language|first language|time ?zone|height|weight|salary|budget|blood type|shoe size|" +
  "wifi password|pronouns|star sign|anniversary|favou?rite [\\w ]+?"

const adverb = "(?: now| currently| just| recently| still| finally| actually)*"
const relation = (verb: string, value: string): RegExp =>
  new RegExp(`^(?<who>User(?:'s [\\w' -]+?)?)${adverb}${verb.replaceAll("~", adverb)} ${value}$`, "u")

/** What a person has one of: the verb, with `~` where an adverb may be, and the value. The first that fits counts. */
const relations: ReadonlyArray<readonly [string, RegExp]> = [
  [
    "lives",
    relation(
      " (?:lives?|is living|resides|is based|(?:has )?(?:moved|relocated))~(?: back)?(?: from .+?)? (?:in|to|at)",
      "(?<value>(?:the )?\\p{Lu}.*)"
    )
  ],
  ["works as", relation(" (?:works?|is working|started working)~ as", "(?<value>.+)")],
  [
    "works at",
    relation(
      " (?:works?|is working|started working|(?:got|has|started) a(?: new)? job)~ (?:at|for)",
      "(?!home|night)(?<value>.+)"
    )
  ],
  ["studies at", relation(" (?:study|studies|is studying|goes to school)~ at", "(?<value>.+)")],
  ["goes by", relation(" (?:goes by|is called|is named)", "(?<value>.+)")],
  [
    "age",
    relation(
      " (?:is|turned|has turned)~",
      "(?<value>\\d{1,3})(?: years old)?(?: (?:now|today|yesterday|last|this)\\b.*)?"
    )
  ],
  ["married", relation(" (?:is|got)~(?: \\w+ly)?", "(?<value>single|married|engaged|divorced|widowed)\\b.*")],
  ["", relation(`'s (?<attribute>${attributes}) (?:is|are)~(?: on| at| in)?`, "(?<value>.+)")]
]

/** Tells of a move long ago, not of the last one. */
const longAgo = /\b(?:years ago|when|as an? (?:child|kid|student)|in (?:19|20)\d\d|before|until|used to|once)\b/

const relationOf = (text: string): Meaning["relation"] => {
  if (longAgo.test(text)) return null
  for (const [name, pattern] of relations) {
    const found = pattern.exec(text)?.groups
    if (found === undefined) continue
    const what = found.attribute === undefined ? name : [...wordsOf(found.attribute)].join(" ")
    const value = found.value!.replace(/,? (?:not|instead of|rather than)\b.*$/, "")
    return { key: `${found.who!.toLowerCase()} ${what}`, value: wordsOf(value, timeWords) }
  }
  return null
}

/** The meaning of a memory, whether it is told in the third person or, verbatim, in the first. */
export const meaningOf = (memory: string): Meaning => {
  const told = /^User\b/.test(memory) ? memory : thirdPerson(parse(memory)) ?? memory
  const text = told.replace(/[.!\s]+$/, "")
  return {
    text: memory,
    subject: /^User(?:'s \w+)?/.exec(text)?.[0].toLowerCase() ?? "",
    words: wordsOf(text),
    negative: /\b(?:not|never|no|longer|cannot|stopped|quit)\b|n't\b|\banymore\b/.test(text),
    relation: relationOf(text)
  }
}

const within = (part: ReadonlySet<string>, whole: ReadonlySet<string>): boolean =>
  part.size > 0 && [...part].every((word) => whole.has(word))

/** How a new fact stands to a known one. */
export const compare = (fact: Meaning, known: Meaning): "same" | "replaces" | "other" => {
  if (fact.relation !== null && fact.relation.key === known.relation?.key) {
    return within(fact.relation.value, known.relation.value) ? "same" : "replaces"
  }
  const equal = fact.words.size === known.words.size && within(fact.words, known.words)
  return equal && fact.subject === known.subject && fact.negative === known.negative ? "same" : "other"
}

const whoever = "(User(?:'s [\\w' -]+?)?)"
const endings: ReadonlyArray<readonly [RegExp, string]> = [
  [new RegExp(`^${whoever} no longer (.+)$`), "$1 $2"],
  [new RegExp(`^${whoever} (?:doesn't|does not|don't|isn't|is not|hasn't|haven't) (.+?) any ?more$`), "$1 $2"],
  [new RegExp(`^${whoever}(?: has| just| recently| finally)* (?:stopped|quit|gave up|given up) (.+)$`), "$1 $2"]
]
const when = /,? (?:last|this|two|three|a few|\d+) (?:week|month|year|day)s?(?: ago)?$/

/** What is no longer so, if that is what a sentence says; null otherwise. */
export const endedBy = (fact: string): Meaning | null => {
  const text = fact.replace(/[.!\s]+$/, "").replace(when, "")
  const ending = endings.find(([pattern]) => pattern.test(text))
  return ending === undefined ? null : meaningOf(text.replace(...ending))
}

/** Whether what ended, or is to be forgotten, is this memory. */
export const ends = (ended: Meaning, known: Meaning): boolean => {
  if (known.negative || (ended.subject !== "" && ended.subject !== known.subject)) return false
  if (ended.relation !== null && ended.relation.key === known.relation?.key) {
    return within(ended.relation.value, known.relation.value) || within(known.relation.value, ended.relation.value)
  }
  return within(ended.words, known.words)
}
