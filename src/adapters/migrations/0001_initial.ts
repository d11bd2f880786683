/** The first schema. Append-only: once released, a migration never changes; the next one follows it. */

export const name = "0001_initial"

// The rules hold for every writer, a bug of this service included. Where a rule is about what a row was before, a
// trigger says no, and its condition is in its `when`, so that a lawful write costs one comparison.
//
// A foreign key looks at its parent row by row and locks it, which costs more than the write. So there is none where
// something else says the same (a transfer, at its authorization and account; a workspace, once for all rows that a
// statement adds, since no account is ever removed), and none from a row to one that is written with it or held by its
// writer (inputs, plans, projections): the audit finds what belongs to nothing.
const refuseChange = `create function refuse_change() returns trigger language plpgsql as $$
  begin
    raise integrity_constraint_violation using message = tg_argv[0], constraint = tg_name, table = tg_table_name;
  end
$$`

const refuseStrangers = `create function refuse_strangers() returns trigger language plpgsql as $$
  begin
    if exists (
      select from (select distinct workspace_id from added) a
      where not exists (select from workspaces w where w.workspace_id = a.workspace_id)
    ) then
      raise foreign_key_violation using message = 'no such workspace', constraint = tg_name, table = tg_table_name;
    end if;
    return null;
  end
$$`

const tenants = [
  `create table workspaces (
    workspace_id text primary key,
    created_at timestamptz not null default now()
  )`,
  `create table api_keys (
    workspace_id text not null references workspaces,
    id text not null,
    secret_hash text not null unique,
    label text not null,
    scopes text[] not null,
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    primary key (workspace_id, id)
  )`
]

// Hot rows only: inputs and plans live apart, so that claims and heartbeats rewrite little. The lease is not indexed,
// so that a heartbeat stays a heap-only update; the sweep of expired leases scans the small index of running rows.
const operations = [
  `create sequence operation_seq`,
  `create table operations (
    workspace_id text not null,
    id uuid not null,
    kind text not null check (kind in ('memory.infer', 'memory.add', 'memory.update', 'memory.delete')),
    state text not null check (state in ('pending', 'running', 'succeeded', 'failed')),
    scope jsonb not null,
    lane text not null,
    seq bigint not null,
    ready boolean not null,
    fair_tag bigint not null,
    next_attempt_at timestamptz,
    epoch integer not null check (epoch >= 0),
    attempts integer not null check (attempts >= 0),
    invalid_outputs integer not null default 0,
    window_started_at timestamptz not null,
    lease_owner text,
    lease_expires_at timestamptz,
    authorization_no integer,
    failure text,
    outcome text check (outcome in ('stored', 'no_memory')),
    results jsonb not null default '[]',
    evidence jsonb not null,
    created_at timestamptz not null,
    started_at timestamptz,
    completed_at timestamptz,
    primary key (workspace_id, id),
    constraint running_holds_a_lease check ((state = 'running') = (lease_owner is not null)),
    constraint lease_has_an_end check ((lease_owner is null) = (lease_expires_at is null)),
    constraint terminal_is_completed check ((state in ('succeeded', 'failed')) = (completed_at is not null)),
    constraint success_has_an_outcome check ((state = 'succeeded') = (outcome is not null)),
    constraint failure_has_a_class check (state <> 'failed' or failure is not null),
    constraint terminal_is_not_ready check (not ready or state in ('pending', 'running')),
    constraint running_is_the_head check (state <> 'running' or ready)
  ) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
  `create trigger operations_have_a_workspace after insert on operations referencing new table as added
    for each statement execute function refuse_strangers()`,
  `create trigger operations_follow_their_states after update on operations for each row when (
    old.state = 'succeeded'
    or old.state = 'failed' and new.state not in ('failed', 'pending')
    or new.epoch < old.epoch
    or new.epoch = old.epoch and new.lease_owner <> coalesce(old.lease_owner, '')
    or new.workspace_id <> old.workspace_id or new.id <> old.id or new.kind <> old.kind or new.lane <> old.lane
  ) execute function refuse_change('a terminal state is final, and a new holder has a new epoch')`,
  `create index operations_claim on operations (fair_tag, seq)
    where state = 'pending' and ready and next_attempt_at is null`,
  `create index operations_retry on operations (next_attempt_at)
    where state = 'pending' and ready and next_attempt_at is not null`,
  `create index operations_running on operations (id) where state = 'running'`,
  `create index operations_lane on operations (workspace_id, lane, seq) where state in ('pending', 'running')`,
  // One head to a lane, whatever the programs do.
  `create unique index operations_lane_head on operations (workspace_id, lane) where ready`,
  `create index operations_failed on operations (completed_at) where state = 'failed'`,
  `create table idempotency_keys (
    workspace_id text not null,
    key_hash text not null,
    command_version integer not null,
    command_hash text not null,
    operation_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (workspace_id, key_hash),
    foreign key (workspace_id, operation_id) references operations
  )`,
  `create trigger keys_name_one_command after update on idempotency_keys
    for each row execute function refuse_change('a key names one command for ever')`,
  `create table operation_inputs (
    workspace_id text not null,
    operation_id uuid not null,
    input jsonb not null,
    primary key (workspace_id, operation_id)
  )`,
  `create trigger inputs_are_accepted_once after update on operation_inputs
    for each row execute function refuse_change('an accepted input never changes')`,
  `create table operation_plans (
    workspace_id text not null,
    operation_id uuid not null,
    plan jsonb not null,
    primary key (workspace_id, operation_id)
  )`,
  `create trigger plans_are_frozen after update on operation_plans
    for each row execute function refuse_change('a frozen plan never changes')`,
  `create table fair_clock (
    singleton boolean primary key default true check (singleton),
    value bigint not null
  ) with (fillfactor = 50)`,
  `insert into fair_clock (value) values (0)`,
  `create table outbox (
    workspace_id text not null,
    seq bigint generated always as identity,
    xid xid8 not null default pg_current_xact_id(),
    operation_id uuid not null,
    state text not null,
    at timestamptz not null default clock_timestamp(),
    primary key (workspace_id, seq)
  )`
]

const memories = [
  `create table memories (
    workspace_id text not null,
    id uuid not null,
    version integer not null check (version >= 1),
    text text,
    user_id text,
    agent_id text,
    run_id text,
    app_id text,
    metadata jsonb not null,
    event_date text,
    operation_id uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted boolean not null default false,
    words tsvector generated always as (to_tsvector('english', coalesce(text, ''))) stored,
    primary key (workspace_id, id),
    constraint deleted_has_no_text check (deleted = (text is null)),
    constraint somebody_remembers check (num_nonnulls(user_id, agent_id, run_id, app_id) > 0)
  ) with (fillfactor = 80)`,
  `create trigger memories_have_a_workspace after insert on memories referencing new table as added
    for each statement execute function refuse_strangers()`,
  `create trigger memories_go_one_version_on after update on memories for each row when (
    old.deleted or new.version <> old.version + 1 or new.workspace_id <> old.workspace_id or new.id <> old.id
  ) execute function refuse_change('a memory goes one version on, and never comes back from its deletion')`,
  `create index memories_user on memories (workspace_id, user_id, id) where not deleted and user_id is not null`,
  `create index memories_agent on memories (workspace_id, agent_id, id) where not deleted and agent_id is not null`,
  `create index memories_run on memories (workspace_id, run_id, id) where not deleted and run_id is not null`,
  `create index memories_app on memories (workspace_id, app_id, id) where not deleted and app_id is not null`,
  `create index memories_words on memories using gin (words) where not deleted`,
  `create table memory_history (
    workspace_id text not null,
    memory_id uuid not null,
    version integer not null,
    change text not null check (change in ('add', 'update', 'delete')),
    text text,
    operation_id uuid not null,
    at timestamptz not null,
    primary key (workspace_id, memory_id, version),
    foreign key (workspace_id, memory_id) references memories
  )`,
  // History is append-only, but for one thing: deleting a memory erases its texts.
  `create trigger history_only_forgets after update on memory_history for each row when (
    new.text is not null or (new.workspace_id, new.memory_id, new.version, new.change, new.operation_id, new.at)
      is distinct from (old.workspace_id, old.memory_id, old.version, old.change, old.operation_id, old.at)
  ) execute function refuse_change('history is append-only')`,
  `create trigger history_stays after delete on memory_history
    for each row execute function refuse_change('history is append-only')`,
  `create trigger history_remains before truncate on memory_history execute function refuse_change('append-only')`,
  `create table projections (
    workspace_id text not null,
    memory_id uuid not null,
    version integer not null,
    operation_id uuid not null,
    attempts integer not null default 0,
    next_attempt_at timestamptz not null,
    primary key (workspace_id, memory_id, version)
  ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)`,
  `create index projections_due on projections (next_attempt_at)`,
  `create index projections_operation on projections (workspace_id, operation_id)`
]

// Balances move only when a transfer is inserted, by trigger; a direct change of a balance is refused.
const ledger = [
  `create table accounts (
    workspace_id text primary key references workspaces,
    available bigint not null default 0 check (available >= 0),
    reserved bigint not null default 0 check (reserved >= 0),
    consumed bigint not null default 0 check (consumed >= 0),
    issued bigint not null default 0,
    fair_time bigint not null default 0,
    constraint conserved check (available + reserved + consumed = issued)
  ) with (fillfactor = 50)`,
  `create table authorizations (
    workspace_id text not null,
    operation_id uuid not null,
    no integer not null check (no >= 1),
    state text not null check (state in ('open', 'charged', 'refunded')),
    reserved bigint not null check (reserved >= 0),
    charged bigint not null default 0,
    price jsonb not null,
    primary key (workspace_id, operation_id, no),
    foreign key (workspace_id, operation_id) references operations,
    constraint charge_is_within_reserve check (charged between 0 and reserved),
    constraint charge_is_of_the_charged check (state = 'charged' or charged = 0)
  ) with (fillfactor = 70)`,
  `create trigger authorizations_end_once after update on authorizations for each row when (
    old.state <> 'open' and new.* is distinct from old.* or new.reserved <> old.reserved or new.price <> old.price
    or new.workspace_id <> old.workspace_id or new.operation_id <> old.operation_id or new.no <> old.no
  ) execute function refuse_change('what was reserved never changes, and an authorization ends once')`,
  `create trigger authorizations_stay after delete on authorizations
    for each row execute function refuse_change('what was authorized stays')`,
  `create unique index authorizations_one_live on authorizations (workspace_id, operation_id)
    where state in ('open', 'charged')`,
  `create table transfers (
    workspace_id text not null,
    seq bigint generated always as identity,
    kind text not null check (kind in ('grant', 'reserve', 'charge', 'release', 'refund')),
    from_account text not null generated always as (
      case kind when 'grant' then 'issued' when 'reserve' then 'available' else 'reserved' end) stored,
    to_account text not null generated always as (
      case kind when 'reserve' then 'reserved' when 'charge' then 'consumed' else 'available' end) stored,
    amount bigint not null check (amount >= 0),
    operation_id uuid,
    authorization_no integer,
    reference text,
    at timestamptz not null default now(),
    primary key (workspace_id, seq),
    constraint grant_has_no_authorization check ((kind = 'grant') = (num_nonnulls(operation_id, authorization_no) = 0)),
    constraint spending_has_an_authorization check (num_nonnulls(operation_id, authorization_no) in (0, 2)),
    constraint grant_has_a_reference check ((kind = 'grant') = (reference is not null))
  )`,
  `create unique index transfers_once on transfers (workspace_id, operation_id, authorization_no, kind)
    where operation_id is not null`,
  `create unique index transfers_one_outcome on transfers (workspace_id, operation_id, authorization_no)
    where kind in ('charge', 'refund')`,
  `create unique index transfers_grant on transfers (workspace_id, reference) where kind = 'grant'`,
  `create trigger transfers_are_final after update or delete on transfers
    for each row execute function refuse_change('a transfer is final')`,
  `create trigger transfers_stay before truncate on transfers execute function refuse_change('a transfer is final')`,
  `create function move_balances() returns trigger language plpgsql as $$
    declare accounts_moved bigint;
    begin
      -- A subquery, not a join: it stays one look at an index however the tables grow under a cached plan.
      if exists (
        select from moved m where m.kind <> 'grant' and m.amount is distinct from (
          select case
            when m.kind = 'reserve' then a.reserved
            when m.kind = 'refund' and a.state = 'refunded' then a.reserved
            when m.kind = 'charge' and a.state = 'charged' then a.charged
            when m.kind = 'release' and a.state = 'charged' then a.reserved - a.charged
          end
          from authorizations a where a.workspace_id = m.workspace_id
            and a.operation_id = m.operation_id and a.no = m.authorization_no
        )
      ) then
        raise integrity_constraint_violation using constraint = 'transfer_moves_what_was_authorized';
      end if;
      perform from accounts where workspace_id in (select workspace_id from moved) order by workspace_id for update;
      update accounts a set
        available = a.available + d.available, reserved = a.reserved + d.reserved,
        consumed = a.consumed + d.consumed, issued = a.issued + d.issued
      from (
        select workspace_id,
          sum(case when to_account = 'available' then amount else 0 end
            - case when from_account = 'available' then amount else 0 end)::bigint as available,
          sum(case when to_account = 'reserved' then amount else 0 end
            - case when from_account = 'reserved' then amount else 0 end)::bigint as reserved,
          sum(case when to_account = 'consumed' then amount else 0 end)::bigint as consumed,
          sum(case when from_account = 'issued' then amount else 0 end)::bigint as issued
        from moved group by workspace_id
      ) d where d.workspace_id = a.workspace_id;
      get diagnostics accounts_moved = row_count;
      if accounts_moved <> (select count(distinct workspace_id) from moved) then
        raise integrity_constraint_violation using constraint = 'transfer_has_an_account';
      end if;
      return null;
    end
  $$`,
  `create trigger transfers_move_balances after insert on transfers referencing new table as moved
    for each statement execute function move_balances()`,
  `create trigger accounts_open_empty after insert on accounts for each row
    when (new.issued <> 0 or new.available <> 0 or new.reserved <> 0 or new.consumed <> 0)
    execute function refuse_change('balances move by transfers only')`,
  `create trigger balances_move_by_transfers after update of workspace_id, available, reserved, consumed, issued
    or delete on accounts for each row when (pg_trigger_depth() < 1)
    execute function refuse_change('balances move by transfers only')`
]

export const statements: ReadonlyArray<string> = [refuseChange, refuseStrangers, ...tenants, ...operations, ...memories, ...ledger]
