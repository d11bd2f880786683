/**
 * What the database saw of each operation, and by whom: triggers of the run's own write down every change of its state,
 * epoch or lease, and every plan, with the role behind it. Each process of the service has a role of its own.
 */
import { Effect } from "effect"
import type { Database } from "./database.ts"
import type { Entry } from "./history/entry.ts"

/** A role for each process, and the triggers. The password is that of the owner. */
export const install = (database: Database, roles: ReadonlyArray<string>) =>
  Effect.orDie(database.operate([
    ...roles.map((role) => `create role "${role}" superuser login password '${database.password()}'`),
    "create schema chaos",
    `create table chaos.journal (
      no bigint generated always as identity primary key,
      writer text not null default session_user,
      workspace text not null,
      id text not null,
      what text not null,
      was text,
      state text,
      was_epoch integer,
      epoch integer not null,
      failure text,
      free boolean not null
    )`,
    `create function chaos.changed() returns trigger language plpgsql as $$ begin
      insert into chaos.journal (workspace, id, what, was, state, was_epoch, epoch, failure, free) values (
        new.workspace_id, new.id, 'changed', old.state, new.state, old.epoch, new.epoch, new.failure,
        coalesce(old.lease_expires_at <= clock_timestamp(), true)
      );
      return null;
    end $$`,
    `create trigger chaos_changed after update on public.operations for each row when (
      old.state <> new.state or old.epoch <> new.epoch or old.lease_expires_at is distinct from new.lease_expires_at
    ) execute function chaos.changed()`,
    `create function chaos.planned() returns trigger language plpgsql as $$ begin
      insert into chaos.journal (workspace, id, what, was, state, was_epoch, epoch, free)
      select workspace_id, id, 'planned', state, state, epoch, epoch, false from public.operations
      where workspace_id = new.workspace_id and id = new.operation_id;
      return null;
    end $$`,
    `create trigger chaos_planned after insert on public.operation_plans for each row execute function chaos.planned()`
  ]))

/** Everything that was written down and committed, in the order in which it happened to each operation. */
export const read = (database: Database): Effect.Effect<ReadonlyArray<Entry>> =>
  Effect.orDie(database.operate([
    `select writer, workspace, id, what, was, state, was_epoch as "wasEpoch", epoch, failure, free
      from chaos.journal order by no`
  ])) as Effect.Effect<ReadonlyArray<Entry>>
