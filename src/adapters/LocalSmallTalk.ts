/** What people say without telling anything of themselves: questions, requests, guesses, moods and manners. */
import { hasVerb, isBase, isOwner, isSubject, type Terms, textOf } from "./LocalGrammar.ts"

/** A pattern over several lines; the space that begins a line is not part of it. */
const any = (strings: TemplateStringsArray, ...parts: ReadonlyArray<string>): string =>
  `(?:${String.raw(strings, ...parts).replace(/\n\s*/g, "")})`

const request = new RegExp(
  any`[,;.]? (?:so |and |but |then )*(?:please\b|(?:can|could|would|will) you\b).*$|
    [,;] (?:so |and |but |then )*(?:suggest|recommend|give|tell|show|help|find|write|explain|what|where|which|how|who|
    any|should I|can I|do you|did you|is there|are there|is it|is that)\b.*$`,
  "i"
)

/** The part of a sentence before a request or a question; null where there is none. */
export const withoutRequest = (text: string): string | null => {
  const told = text.replace(request, "")
  return told.endsWith("?") || told === "" || /^please\b/i.test(told) ? null : told
}

const question = new RegExp(
  any`^(?:who|what|where|why|how|which|whose|can|could|would|will|do|does|did|is|are|am|was|were|should|shall|may|have|
    has|any)\b`,
  "i"
)

const guess = new RegExp(
  any`\b(?:if|unless|suppose|imagine|hypothetically|maybe|perhaps|might|pretend|assuming|let's|wish|would have|
    could have|should have)\b`,
  "i"
)

const someWork = any`know|ask|see|hear|understand|find out|check|order|book|get|write|make|create|build|fix|translate|
  find|generate|read about|learn about|talk|discuss`
const someText = any`recipe|list|help|summary|poem|essay|email|letter|ideas?|suggestions?|advice|recommendations?|
  questions?|tips|information|info|examples?|explanation|translation|answer|plan`
const asksForWork = new RegExp(
  any`^(?:I|we) (?:(?:just|also|really|would|do) )*
    (?:want|need|like|love|have|am looking for|are looking for|was looking for)
    (?: to ${someWork}| (?:a|an|some|the|your|more|another|any)(?: \w+){0,2} ${someText}| ${someText})\b`,
  "i"
)

const mood = any`tired|hungry|bored|busy|cold|hot|late|thirsty|sleepy|exhausted|excited|sad|angry|annoyed|upset|nervous|
  worried|impressed|surprised`
const worthTrying = any`lose|gain|learn|quit|stop|eat|drink|sleep|save|cut|reduce|improve|become|conceive|exercise|move|
  buy|get (?:fit|pregnant|healthy|in shape)`
const somethingSaid = any`so|that|you|it|this|the|there|what|how|why|when|like`
const smallTalk = new RegExp(
  any`^(?:I|we) (?:(?:just|also|really|do|so|already|totally|am|was|were|are) )*(?:
    sorry|afraid|sure|not sure|back|here|done|ready|kidding|joking|curious|confused|listening|glad|grateful|lost|stuck|
    (?:fine|ok|okay|good|great|well|happy)(?! (?:at|with|in)\b)|
    asking|wondering|saying|checking|talking|thinking|hoping|testing|getting (?:an|this|the)|
    trying(?! to ${worthTrying}\b)|
    (?:a bit |very |too |pretty |quite |kind of )?
    ${mood}(?: today| now| right now| tonight| about (?:it|this|that))?$|
    see(?! (?:a|an|my|our|dr)\b)|hope(?! to\b)|guess|understand|agree|disagree|mean|meant|wonder|bet|appreciate|
    get it|got it|forgot|suppose|said|asked|told|
    (?:don't|didn't|did not|do not|can't|cannot) (?:know|think|get|understand|see|believe|remember|mean|wait|mind)|
    think(?! (?:that )?(?:I|we|my|our|about|of)\b)|
    (?:thought|believe|feel|know|assume|doubt|say)(?! how to\b)(?= ${somethingSaid}\b|[.,!]|$)|
    (?:have|had|got) (?:to go|a (?:quick |few )?questions?|another question|an idea|no idea)|
    (?:got to|gotta|must|should) (?:go|run|leave)|
    (?:will|am going to|are going to|going to) (?:try|check|think|let you|see|do (?:that|it|this)|get back|take a|
    be (?:back|right)|look|read|use|keep|go now|go with|ask)|
    could|should|shall|would rather|can (?:see|try|do|wait))\b`,
  "i"
)

/** Speaks of something that only the conversation shows. */
const thing = any`it|this|that|them|those|these|one|so|too|there`
const time = any`when|that|year|month|week|summer|spring|winter|autumn|fall|morning`
const pointing = new RegExp(
  any`^(?:I|we)(?: \w+)? \w+ ${thing}\b(?! ${time})| (?:it|this|that|them|these|those|him)$`,
  "i"
)

const manners = new RegExp(
  any`^(?:"|(?:let|lets|thanks|thank|please|welcome|happy|same|not)\b)|\b(?:you|your|yours|u|error|bug|exception)\b`,
  "i"
)

const shortHabit = new RegExp(
  any`^I (?:smoke|vape|drink|ski|swim|run|paint|sing|dance|code|cook|bake|garden|knit|stutter|snore|surf|climb|hike|
    cycle)$`,
  "i"
)

/** Whether a clause tells something about its speaker that is worth more than a moment. */
export const isTold = (terms: Terms): boolean => {
  const text = textOf(terms).replace(/[\s.!,;]+$/, "")
  const [first] = terms
  if (first === undefined || text.endsWith("?") || !hasVerb(terms)) return false
  if ([question, guess, manners, smallTalk, asksForWork, pointing].some((pattern) => pattern.test(text))) return false
  if (isSubject(first)) return terms.length > 2 || shortHabit.test(text)
  // An order begins with its verb.
  return terms.length > 3 && (isOwner(first) || (!first.tags.has("Imperative") && !isBase(first)))
}
