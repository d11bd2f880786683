/** Short names of statements, for traces and for the coordinates of faults: what is done, and to which table. */

const verbs = /\b(insert into|update|delete from|lock table|select|nextval)\b/i
const writes = /\b(insert into|update|delete from|lock table)\s+(?:only\s+)?"?([a-z_]+)/i
/** Not functions, of which one reads as well. */
const reads = /\b(?:from|join)\s+"?([a-z_]+)\b"?(?!\s*\()/gi
/** Names that a statement gives to a part of itself are no tables. */
const parts = /(?:\bwith|,)\s*([a-z_]+) as (?:materialized )?\(/gi

const known = new Map<string, string>()

/** The first table that it writes, or else the first that it reads. */
export const labelOf = (sql: string): string => {
  let label = known.get(sql)
  if (label === undefined) known.set(sql, label = named(sql))
  return label
}

const named = (sql: string): string => {
  const own = new Set([...sql.matchAll(parts)].map(([, name]) => name))
  const written = writes.exec(sql)
  // `for update` is no update.
  if (written !== null && !/for (no key )?$/i.test(sql.slice(0, written.index))) {
    return `sql.${written[1]!.split(" ")[0]!.toLowerCase()}.${written[2]!}`
  }
  const table = [...sql.matchAll(reads)].map(([, name]) => name!).find((name) => !own.has(name))
  const verb = verbs.exec(sql)?.[1]?.toLowerCase() ?? "statement"
  return table === undefined ? `sql.${verb}` : `sql.${verb}.${table}`
}
