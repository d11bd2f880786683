/**
 * What is committed in a database of SQL, as oracles see it. A trigger on each table tells which rows a transaction has
 * touched; once it has committed, these are read.
 */
import type { Change, Committed, Rows, TableName } from "../Commit.ts"
import type { Pglite } from "./Pglite.ts"
import { keyOf, singleton, type Source, sources } from "./Sources.ts"

/** Rows that a transaction has touched, a line for each: the table and the key. A rollback forgets them too. */
const touched = "sim.touched"

/** Lets a table tell. */
const tell = (source: Source): ReadonlyArray<string> => [
  `create function tell_of_${source.table}() returns trigger language plpgsql as $$
    declare touched record;
    begin
      if tg_op = 'DELETE' then touched := old; else touched := new; end if;
      perform set_config('${touched}', coalesce(current_setting('${touched}', true), '')
        || '${source.name} ' || ${keyOf(source, "touched")} || E'\\n', false);
      return null;
    end
  $$`,
  `create trigger tell_of_${source.table} after insert or update or delete on ${source.table}
    for each row execute function tell_of_${source.table}()`
]

/** Prepares a migrated database, once. */
export const prepare = (server: Pglite): void => {
  for (const statement of sources.flatMap(tell)) server.must(statement)
}

export class Mirror {
  readonly committed: Committed
  private readonly server: Pglite
  private readonly tables: { readonly [Name in TableName]: Map<string, Rows[Name]> }

  constructor(server: Pglite) {
    this.server = server
    this.tables = Object.fromEntries(sources.map(({ name }) => [name, new Map()])) as unknown as Mirror["tables"]
    this.committed = this.tables
    this.tables.fairClock.set(singleton, { value: 0 })
  }

  /** What has changed since it was last asked. */
  changes(): ReadonlyArray<Change> {
    const [row] = this.server.must(`select current_setting('${touched}', true) as lines, set_config('${touched}', '', false)`)
    const lines = (row as { readonly lines: string | null }).lines ?? ""
    if (lines === "") return []
    const keys = Map.groupBy(new Set(lines.trimEnd().split("\n")), (line) => line.slice(0, line.indexOf(" ")))
    return sources.flatMap((source) => {
      const mine = keys.get(source.name)?.map((line) => line.slice(line.indexOf(" ") + 1)) ?? []
      return mine.length === 0 ? [] : this.read(source, mine)
    })
  }

  private read(source: Source, keys: ReadonlyArray<string>): ReadonlyArray<Change> {
    const key = keyOf(source, source.alias)
    const found = this.server.must(
      `select ${key} as "rowKey", ${source.columns} from ${source.table} ${source.alias} where ${key} = any($1::text[])`,
      [keys]
    ) as ReadonlyArray<{ readonly rowKey: string }>
    const rows = source.decode(found)
    const now = new Map(found.map(({ rowKey }, index) => [rowKey, rows[index]!]))
    const table = this.tables[source.name] as Map<string, Rows[TableName]>
    return keys.flatMap((key) => {
      const before = table.get(key) ?? null
      const after = now.get(key) ?? null
      if (after !== null) table.set(key, after)
      else table.delete(key)
      return before === null && after === null ? [] : [{ table: source.name, key, before, after } as Change]
    })
  }
}
