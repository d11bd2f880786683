/** Holds what every client was told against what the database ended up with. Pure: a history and an end in, breaches out. */
import { bookOf, type Rule } from "./book.ts"
import { rulesOfFailures } from "./rulesOfFailures.ts"
import { rulesOfReads } from "./rulesOfReads.ts"
import { rulesOfWrites } from "./rulesOfWrites.ts"
import type { Breach, Ended, Told } from "./told.ts"

export const rules: ReadonlyArray<Rule> = [...rulesOfWrites, ...rulesOfReads, ...rulesOfFailures]

export const breaches = (told: ReadonlyArray<Told>, ended: Ended): ReadonlyArray<Breach> => {
  const book = bookOf(told, ended)
  return rules.flatMap(({ check, name }) => check(book).map((finding) => ({ rule: name, ...finding })))
}
