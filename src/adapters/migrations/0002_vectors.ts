/** The exact vector index, and the one row that binds a database to one kind of index and one embedding model. */

export const name = "0002_vectors"

export const statements: ReadonlyArray<string> = [
  `create table vector_meta (
    singleton boolean primary key default true check (singleton),
    kind text not null check (kind in ('exact', 'hnsw')),
    model text not null,
    dimension integer not null check (dimension > 0)
  )`,
  // Vectors stay in the row up to nearly a page, and are not compressed: a search reads all of them.
  `create table memory_vectors (
    workspace_id text not null,
    memory_id uuid not null,
    version integer not null,
    embedding bytea not null,
    primary key (workspace_id, memory_id)
  ) with (toast_tuple_target = 8160)`,
  `alter table memory_vectors alter column embedding set storage external`
]
