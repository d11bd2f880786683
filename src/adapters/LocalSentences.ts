/** From what somebody wrote to the clauses in which they tell something, each with a subject of its own. */
import nlp from "compromise"
import { hasVerb, isBase, isOwner, isPast, isSubject, parse, type Terms, textOf, verbOf } from "./LocalGrammar.ts"
import { isTold, withoutRequest } from "./LocalSmallTalk.ts"

/** Longer paragraphs are looked at in parts, so that no step takes long. */
const pieceMaxLength = 1_000
/** Longer sentences are seldom one thought, and longer clauses never. */
const sentenceMaxLength = 500
const clauseMaxLength = 300

/** A clause of the speaker's, and how it is meant: told by the way, to be remembered, or to be forgotten. */
export interface Clause {
  readonly terms: Terms
  readonly meant: "told" | "remember" | "forget"
}

/** The clauses of one sentence after the other, so that whoever reads can pause between two. */
export function* clausesOf(content: string): Generator<ReadonlyArray<Clause>, void> {
  for (const piece of piecesOf(content)) {
    let spokenOf: Person | null = null
    for (const text of nlp.tokenize(piece).out("array") as ReadonlyArray<string>) {
      const bare: string = text.length > sentenceMaxLength ? "" : named(withoutOpening(plain(text)), spokenOf)
      const clauses: ReadonlyArray<Clause> = clausesIn(bare)
      spokenOf = clauses.map(({ terms }) => personIn(textOf(terms))).findLast((person) => person !== null) ?? spokenOf
      yield clauses
    }
  }
}

/** Paragraphs, or parts of long ones that end with a sentence. Code, quotations and tables are nobody's statement. */
const piecesOf = (content: string): ReadonlyArray<string> => {
  const prose = content.replace(/```[^]*?(```|$)/g, "\n").replace(/^[ \t]*[>|].*$/gm, "")
  const some = `[^\\n]{1,${pieceMaxLength}}`
  const parts = prose.match(new RegExp(`${some}$|${some}[.!?](?=\\s)|${some}(?=\\s)|${some}`, "gm")) ?? []
  return parts.map((part) => part.replace(/^\s*([-*•]|\d{1,2}[.)])\s+/, "").trim()).filter((part) => part !== "")
}

const speaker = /\b(?:I|we|my|our|me|us|mine|ours|myself|ourselves)\b/i

const clausesIn = (text: string): ReadonlyArray<Clause> =>
  meantBy(text).filter(({ terms }) => textOf(terms).length <= clauseMaxLength)

const meantBy = (text: string): ReadonlyArray<Clause> => {
  const forgotten = forget.exec(text)?.[1]
  if (forgotten !== undefined) return [{ terms: parse(forgotten), meant: "forget" }]
  const nickname = /\b[Cc]alls? me ([A-Z][\w'-]*(?: [A-Z][\w'-]*)?)/.exec(text)?.[1]
  if (nickname !== undefined) return [{ terms: parse(`I go by ${nickname}`), meant: "remember" }]
  const wanted = remembered(text)
  if (wanted !== null) return split(wanted).map((terms) => ({ terms: introduced(terms), meant: "remember" }))
  const told = withoutRequest(text)
  if (told === null || !speaker.test(told)) return []
  return split(parse(told)).filter(isTold).map((terms) => ({ terms: introduced(terms), meant: "told" }))
}

/** Spelled as the grammar expects it: contractions of the subject in full, and nothing but words. */
const plain = (text: string): string =>
  spelling.reduce((written, [from, to]) => written.replace(from, to), text.replace(/\s+/g, " ").trim()).trim()

const spelling: ReadonlyArray<readonly [RegExp, string]> = [
  [/[\u2018\u2019]/g, "'"],
  [/[\u201c\u201d]/g, "\""],
  [/[\p{Extended_Pictographic}\u{fe0f}\u{200d}]+/gu, ""],
  [/(?<=\s)(:-?[()DP]|;-?\)|xD|<3)(?=\s|$)/g, ""],
  [/\bi'?m\b/gi, "I am"],
  [/\bi'?ve\b/gi, "I have"],
  [/\bi'll\b/gi, "I will"],
  [/\bi'd (?=been\b|had\b|better\b|\w+ed\b)/gi, "I had "],
  [/\bi'd\b/gi, "I would"],
  [/\bwe're\b/gi, "we are"],
  [/\bwe've\b/gi, "we have"],
  [/\bwe'll\b/gi, "we will"],
  [/\bi\b(?![.'])/g, "I"],
  [/\b(do|does|did|ca|have|is|was|are|could|would)nt\b/gi, "$1n't"],
  [/\bgonna\b/gi, "going to"],
  [/\bwanna\b/gi, "want to"],
  [/\bme and (my [\w'-]+(?: [A-Z]\w+)?) /gi, "$1 and I "],
  [/,? (?:lol|haha|btw|by the way|you know|tbh|though|actually|if that helps|for context|fyi)(?=[.!\s]*$)/gi, ""],
  [/\bmy ([a-z]+(?: [a-z]+)?): (?=\S)/gi, "my $1 is "]
]

const opening = new RegExp(
  "^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| all| everyone| again)?[,!. ]+|" +
    "(?:thanks|thank you|thx|cheers)(?: so much| a lot| for (?:that|this|your help|the \\w+))?[,!.] *|" +
    "(?:sure|yes|yeah|yep|no|nope|ok|okay|well|oh|ah|hmm|great|cool|nice|right|anyway|actually|honestly|basically|" +
    "btw|by the way|fun fact|for context|so|also|and|but|plus|sorry|wow|to be honest|in fact|unfortunately|luckily)" +
    "[,:!.]* +)",
  "i"
)

const withoutOpening = (text: string): string => {
  let bare = text
  for (let turn = 0; turn < 4; turn++) bare = bare.replace(opening, "")
  return bare
}

const forget = new RegExp(
  "^(?:please |you can |can you |could you |just )*(?:forget|delete|remove) " +
    "(?:that |about |what I said about |everything about )?((?:I|we|my|our)\\b[^?]*)",
  "i"
)
const toRemember = new RegExp(
  "^(?:please |could you |can you |just |always |and )*(?:remember|note|don't forget|do not forget|never forget|know|" +
    "fyi|keep in mind|bear in mind|make a note|take note|be aware|for the record|for future reference|" +
    "just so you know|so you know|important|note to self)(?:[,:]| that\\b|(?= (?:I|my|we|our)\\b)) *",
  "i"
)

/** What the speaker wants to be remembered, if that is what the sentence says. */
const remembered = (text: string): Terms | null => {
  if (!toRemember.test(text)) return null
  const rest = withoutOpening(text.replace(toRemember, ""))
  if (rest.endsWith("?") || /^(?:to|when|what|how|why|where|who|me|this|it|if)\b|\byour?\b/i.test(rest)) return null
  const terms = parse(rest)
  return hasVerb(terms) ? terms : null
}

/** "I am Ana" tells a name. */
const introduced = (terms: Terms): Terms => {
  const name = /^I am ((?:[A-Z][\w'-]+ ?){1,3})[.,;!]*$/.exec(textOf(terms))?.[1]
  return name !== undefined && terms[2]?.tags.has("FirstName") === true ? parse(`my name is ${name}`) : terms
}

const subordinate = /^(?:when|whenever|while|if|after|before|because|since|although|though|as|once|until|unless)\b/i
const relative = /\b(?:who|which|that|whose|where)\b/i
const bindsVerb = new RegExp(
  "\\b(?:to|can|can't|cannot|could|will|won't|would|should|must|don't|didn't|do not|did not|never|let|make|made|help|" +
    "because|when|while|if)\\b",
  "i"
)

/** The main clauses of a sentence, each with its subject: "I live in Rome and work a lot" has two. */
const split = (terms: Terms): ReadonlyArray<Terms> => {
  for (let place = 1; place < terms.length - 1; place++) {
    const joined = /^(?:and|but)$/.test(terms[place]!.word)
    const divided = /[,;]/.test(terms[place - 1]!.post)
    const rest = terms.slice(joined ? place + 1 : place)
    const right = /^(?:then|now|also|currently|so)$/.test(rest[0]!.word) ? rest.slice(1) : rest
    const left = terms.slice(0, place)
    if ((joined || divided) && (startsAnew(left, right) || (joined && goesOn(left, right)))) {
      return [left, ...split(isSubject(right[0]!) || isOwner(right[0]!) ? right : [left.find(isSubject)!, ...right])]
    }
  }
  return [terms]
}

/** Whether the right side is a clause with its own subject, and the left side does not need it. */
const startsAnew = (left: Terms, right: Terms): boolean => {
  const [first] = right
  if (first === undefined || !(isSubject(first) || isOwner(first))) return false
  return hasVerb(right.slice(isOwner(first) ? 1 : 0)) && hasVerb(left) && !subordinate.test(textOf(left))
}

/** Whether the right side is another verb for the subject of the left side. */
const goesOn = (left: Terms, right: Terms): boolean => {
  const [first] = right
  const subject = left.findIndex(isSubject)
  if (first === undefined || right.length < 2 || subject < 0) return false
  const verb = left[verbOf(left, subject)]
  const text = textOf(left)
  if (verb === undefined || verb === left.at(-1) || subordinate.test(text) || relative.test(text)) return false
  if (/^(?:am|are|was|were)$/.test(first.word)) return true
  return isPast(first) ? !verb.tags.has("Copula") : isBase(first) && !bindsVerb.test(text)
}

interface Person {
  readonly name: string
  readonly gender: "she" | "he" | null
}

const women = "sister|mother|mom|mum|wife|daughter|girlfriend|aunt|grandmother|grandma|niece"
const men = "brother|father|dad|husband|son|boyfriend|uncle|grandfather|grandpa|nephew"
const anybody = "friend|boss|partner|colleague|coworker|neighbou?r|roommate|cousin|manager|doctor|dentist|therapist|" +
  "teacher|dog|cat|puppy|kitten|horse|baby|kid|child"
const kind = `(?:[a-z-]+ ){0,2}?((${women})|(${men})|${anybody})`
const owned = new RegExp(`^(?:[Mm]y|[Oo]ur) ${kind}( [A-Z]\\w+)? (?!and\\b|or\\b)`)
const had = new RegExp(`^(?:I|[Ww]e) have an? ${kind},?(?: named| called)?( [A-Z]\\w+)`)

/** Whom a clause is about, or introduces, in the words of the speaker. */
const personIn = (clause: string): Person | null => {
  const about = owned.exec(clause)
  const [, who, woman, man, name] = about ?? had.exec(clause) ?? []
  if (who === undefined) return null
  const gender = woman !== undefined ? "she" : man !== undefined ? "he" : null
  return { name: about === null ? `my ${who}${name}` : about[0].trim(), gender }
}

/** Puts the person last spoken of where the sentence begins with a pronoun. */
const named = (text: string, person: Person | null): string => {
  const pronoun = /^(?:she|he|her|his)\b/i.exec(text)?.[0].toLowerCase()
  if (pronoun === undefined || person === null) return text
  const gender = pronoun === "she" || pronoun === "her" ? "she" : "he"
  if (person.gender !== null && person.gender !== gender) return text
  return `${person.name}${pronoun === gender ? "" : "'s"}${text.slice(pronoun.length)}`
}
