/** The facts of a conversation by rules alone: only what users tell of themselves, and the same answer every time. */
import { type Fact, planMaxSteps } from "../domain/Plan.ts"
import type { ExtractionRequest } from "../services/Provider.ts"
import { sentence, textOf, thirdPerson } from "./LocalGrammar.ts"
import { compare, endedBy, ends, type Meaning, meaningOf } from "./LocalRelations.ts"
import { type Clause, clausesOf } from "./LocalSentences.ts"

/** What is known: a memory that was shown, or a fact of this conversation, by its place. */
interface Known {
  readonly meaning: Meaning
  readonly memory: number | null
  readonly fact: number | null
}

/** Reads the conversation sentence by sentence, so that whoever runs it can do something else between two. */
export function* extraction(request: ExtractionRequest): Generator<void, ReadonlyArray<Fact>> {
  const facts: Array<Fact | null> = []
  let known: ReadonlyArray<Known> = request.related.map(({ text }, memory) => ({
    meaning: meaningOf(text),
    memory,
    fact: null
  }))
  for (const { content, role } of request.messages) {
    if (role !== "user") continue
    for (const clauses of clausesOf(content)) {
      for (const clause of clauses) known = heard(clause, facts, known)
      yield
    }
  }
  // The latest word counts where there are too many.
  return facts.filter((fact) => fact !== null).slice(-planMaxSteps)
}

/** What is known after a clause; what it adds to the facts, or changes in them, is done to them. */
const heard = (clause: Clause, facts: Array<Fact | null>, known: ReadonlyArray<Known>): ReadonlyArray<Known> => {
  if (clause.meant === "forget") return over(meaningOf(textOf(clause.terms)), facts, known) ?? known
  const text = thirdPerson(clause.terms) ?? (clause.meant === "remember" ? sentence(textOf(clause.terms)) : null)
  if (text === null) return known
  const ended = endedBy(text)
  return (ended === null ? null : over(ended, facts, known)) ?? learned(text, facts, known)
}

/** Takes away what is over; null if nothing of the kind is known. */
const over = (ended: Meaning, facts: Array<Fact | null>, known: ReadonlyArray<Known>): ReadonlyArray<Known> | null => {
  const found = known.find(({ meaning }) => ends(ended, meaning))
  if (found === undefined) return null
  if (found.fact !== null) facts[found.fact] = null
  if (found.memory !== null) facts.push({ change: "delete", text: null, target: found.memory })
  return known.filter((one) => one !== found)
}

const learned = (text: string, facts: Array<Fact | null>, known: ReadonlyArray<Known>): ReadonlyArray<Known> => {
  const meaning = meaningOf(text)
  const same = known.find((one) => compare(meaning, one.meaning) === "same")
  if (same !== undefined) {
    if (same.memory === null || same.fact !== null) return known
    const fact = facts.push({ change: "none", text: null, target: same.memory }) - 1
    return known.map((one) => one === same ? { ...one, fact } : one)
  }
  const replaced = known.find((one) => compare(meaning, one.meaning) === "replaces")
  if (replaced !== undefined && replaced.fact !== null) facts[replaced.fact] = null
  const memory = replaced?.memory ?? null
  const fact = facts.push({ change: memory === null ? "add" : "update", text, target: memory }) - 1
  return [...known.filter((one) => one !== replaced), { meaning, memory, fact }]
}
