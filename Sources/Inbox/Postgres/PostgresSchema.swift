import Platform

/// The inbox's tables in the schema `lazaret`, in numbered versions.
///
/// Triggers keep counts right for any statement: `senders.used` for quotas, `tallies` for pages. A tally has several
/// rows, so that concurrent transactions do not wait for one; a statement updates each count once.
enum PostgresSchema {
  struct Step: Sendable {
    let statements: String

    /// Data that SQL cannot compute, in the same transaction.
    var fill: (@Sendable (PostgresConnection) throws -> Void)?
  }

  /// The steps in order; published ones never change.
  static let steps = [
    Step(statements: first), Step(statements: second, fill: PostgresInboxRecords.noteBandsOfAll),
    Step(statements: third), Step(statements: fourth), Step(statements: fifth), Step(statements: sixth),
    Step(statements: seventh), Step(statements: eighth),
  ]

  /// The key of advisory locks: `laza` in ASCII.
  private static let lockKey = 0x6c61_7a61

  private static let operation = "bring the records of the inbox to this version"

  /// Upgrades to the latest version, one process at a time.
  ///
  /// - Throws: if a later software version went further.
  static func bring(_ connection: PostgresConnection) throws {
    if try version(connection) == steps.count { return }
    // A session lock spans all steps, and ends with the process.
    try connection.run("SET statement_timeout = '15min'; SET lock_timeout = '5min'")
    _ = try connection.query("SELECT pg_advisory_lock($1::int, 1)", [.integer(Int64(lockKey))])
    let found = try version(connection)
    for number in found..<max(found, steps.count) { try take(number, connection) }
    _ = try connection.query("SELECT pg_advisory_unlock($1::int, 1)", [.integer(Int64(lockKey))])
    try connection.run("SET statement_timeout = '30s'; SET lock_timeout = '10s'")
  }

  /// The most attempts at a step that conflicts with other transactions.
  private static let maximumTries = 20

  /// Runs a step in one transaction, again after a deadlock.
  private static func take(_ number: Int, _ connection: PostgresConnection) throws {
    for attempt in 1... {
      do {
        try connection.run("BEGIN")
        try connection.run(steps[number].statements)
        try steps[number].fill?(connection)
        _ = try connection.query("INSERT INTO lazaret.versions (version) VALUES ($1)", [.integer(Int64(number + 1))])
        return try connection.run("COMMIT")
      } catch {
        // If the rollback fails, closing the connection undoes the step.
        try? connection.run("ROLLBACK")
        guard (error as? PostgresFailure)?.isConflict == true, attempt < maximumTries else { throw error }
      }
    }
  }

  /// The database's version; 0 without our schema.
  private static func version(_ connection: PostgresConnection) throws -> Int {
    let table = try connection.query("SELECT to_regclass('lazaret.versions') IS NOT NULL")
    guard try table.text(0, 0) == "t" else { return 0 }
    let versions = try connection.query("SELECT coalesce(max(version), 0) FROM lazaret.versions")
    let version = Int(try versions.integer(0, 0))
    guard (0...steps.count).contains(version) else {
      throw InboxError(
        .records, operation: operation,
        detail: "its database is of version \(version), and this software knows versions up to \(steps.count)",
        hint: "Use the version of Lazaret that brought it there, or a later one.")
    }
    return version
  }

  /// Serializes transactions that take room.
  static func lockRoom(_ connection: PostgresConnection) throws {
    _ = try connection.query("SELECT pg_advisory_xact_lock($1::int, 2)", [.integer(Int64(lockKey))])
  }

  /// Serializes removals.
  static func lockRemovals(_ connection: PostgresConnection) throws {
    _ = try connection.query("SELECT pg_advisory_xact_lock($1::int, 3)", [.integer(Int64(lockKey))])
  }

  // Texts compare bytewise as in SQLite. Functions set their search path to exclude other schemas' tables and
  // operators.
  private static let first = """
    CREATE SCHEMA IF NOT EXISTS lazaret;
    CREATE TABLE lazaret.versions (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
    CREATE TABLE lazaret.place (one boolean PRIMARY KEY DEFAULT true CHECK (one), id text NOT NULL);

    CREATE TABLE lazaret.senders (
      name text COLLATE "C" PRIMARY KEY, quota bigint NOT NULL, token bytea NOT NULL UNIQUE, created bigint NOT NULL,
      revoked bigint, used bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50);

    CREATE TABLE lazaret.uploads (
      ordinal bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE,
      sender text COLLATE "C" NOT NULL REFERENCES lazaret.senders (name), length bigint NOT NULL, state text NOT NULL,
      bundle text COLLATE "C", expires bigint NOT NULL, content text NOT NULL
    ) WITH (fillfactor = 70);
    CREATE INDEX uploads_open ON lazaret.uploads (sender) WHERE state = 'open';
    CREATE INDEX uploads_over ON lazaret.uploads (sender, ordinal) WHERE state <> 'open';
    CREATE INDEX uploads_by_end ON lazaret.uploads (expires) WHERE state <> 'open';
    CREATE INDEX uploads_by_bundle ON lazaret.uploads (bundle) WHERE bundle IS NOT NULL;

    CREATE TABLE lazaret.bundles (
      id text COLLATE "C" PRIMARY KEY, sender text COLLATE "C" NOT NULL REFERENCES lazaret.senders (name),
      sha256 text COLLATE "C" NOT NULL, bytes bigint NOT NULL, date text COLLATE "C" NOT NULL, state text NOT NULL,
      damage text COLLATE "C", placed bigint, words text COLLATE "C" NOT NULL, summary text NOT NULL, details text NOT NULL,
      UNIQUE (sender, sha256, bytes)
    );
    CREATE INDEX bundles_by_date ON lazaret.bundles (date DESC, id DESC);
    CREATE INDEX bundles_by_state ON lazaret.bundles (state, date DESC, id DESC);
    CREATE INDEX bundles_by_damage ON lazaret.bundles (damage, date DESC, id DESC) WHERE damage IS NOT NULL;

    CREATE TABLE lazaret.sightings (
      store text COLLATE "C" PRIMARY KEY, damage text COLLATE "C" NOT NULL, exact text NOT NULL, version text COLLATE "C",
      date text COLLATE "C" NOT NULL, bundle text NOT NULL, content text NOT NULL
    );
    CREATE INDEX sightings_by_damage ON lazaret.sightings (damage, date);
    CREATE TABLE lazaret.damages (damage text COLLATE "C" PRIMARY KEY, latest text COLLATE "C" NOT NULL)
      WITH (fillfactor = 70);
    CREATE INDEX damages_by_date ON lazaret.damages (latest DESC, damage);

    CREATE TABLE lazaret.jobs (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, kind text NOT NULL, bundle text COLLATE "C" NOT NULL,
      state text NOT NULL, attempts bigint NOT NULL DEFAULT 0, excused bigint NOT NULL DEFAULT 0,
      interrupted bigint NOT NULL DEFAULT 0, not_before bigint NOT NULL DEFAULT 0, lease_ends bigint NOT NULL DEFAULT 0,
      owner text, code text, words text, date text NOT NULL, UNIQUE (bundle, kind)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
    CREATE INDEX jobs_waiting ON lazaret.jobs (not_before, id) WHERE state = 'waiting';
    CREATE INDEX jobs_running ON lazaret.jobs (not_before, id) WHERE state = 'running';
    CREATE INDEX jobs_failed ON lazaret.jobs (id) WHERE state = 'failed';

    CREATE TABLE lazaret.tallies (kind text NOT NULL, name text COLLATE "C" NOT NULL, part text COLLATE "C", n bigint NOT NULL)
      WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
    CREATE INDEX tallies_by_name ON lazaret.tallies (kind, name);

    CREATE FUNCTION lazaret.count_upload() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE before bigint := 0; after bigint := 0;
    BEGIN
      IF TG_OP <> 'INSERT' AND OLD.state = 'open' THEN before := OLD.length; END IF;
      IF TG_OP <> 'DELETE' AND NEW.state = 'open' THEN after := NEW.length; END IF;
      IF before <> after THEN
        UPDATE lazaret.senders SET used = used + after - before WHERE name = coalesce(NEW.sender, OLD.sender);
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_upload AFTER INSERT OR DELETE OR UPDATE OF state, length ON lazaret.uploads
      FOR EACH ROW EXECUTE FUNCTION lazaret.count_upload();

    CREATE FUNCTION lazaret.count_bundle() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE before bigint := 0; after bigint := 0;
    BEGIN
      IF TG_OP <> 'INSERT' THEN before := OLD.bytes + coalesce(OLD.placed, 0); END IF;
      IF TG_OP <> 'DELETE' THEN after := NEW.bytes + coalesce(NEW.placed, 0); END IF;
      IF before <> after THEN
        UPDATE lazaret.senders SET used = used + after - before WHERE name = coalesce(NEW.sender, OLD.sender);
      END IF;
      IF TG_OP = 'UPDATE' AND OLD.state = NEW.state AND OLD.damage IS NOT DISTINCT FROM NEW.damage THEN RETURN NULL; END IF;
      IF TG_OP <> 'INSERT' THEN
        INSERT INTO lazaret.tallies VALUES ('bundles', OLD.state, NULL, -1);
        IF OLD.damage IS NOT NULL THEN INSERT INTO lazaret.tallies VALUES ('kept', OLD.damage, NULL, -1); END IF;
      END IF;
      IF TG_OP <> 'DELETE' THEN
        INSERT INTO lazaret.tallies VALUES ('bundles', NEW.state, NULL, 1);
        IF NEW.damage IS NOT NULL THEN INSERT INTO lazaret.tallies VALUES ('kept', NEW.damage, NULL, 1); END IF;
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_bundle AFTER INSERT OR DELETE OR UPDATE OF bytes, placed, state, damage ON lazaret.bundles
      FOR EACH ROW EXECUTE FUNCTION lazaret.count_bundle();

    CREATE FUNCTION lazaret.count_job() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP = 'UPDATE' AND OLD.state = NEW.state THEN RETURN NULL; END IF;
      IF TG_OP <> 'INSERT' THEN INSERT INTO lazaret.tallies VALUES ('jobs', OLD.state, NULL, -1); END IF;
      IF TG_OP <> 'DELETE' THEN INSERT INTO lazaret.tallies VALUES ('jobs', NEW.state, NULL, 1); END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_job AFTER INSERT OR DELETE OR UPDATE OF state ON lazaret.jobs
      FOR EACH ROW EXECUTE FUNCTION lazaret.count_job();

    CREATE FUNCTION lazaret.count_sighting() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP <> 'INSERT' THEN
        INSERT INTO lazaret.tallies VALUES ('seen', OLD.damage, OLD.version, -1);
        IF TG_OP = 'DELETE' OR OLD.damage <> NEW.damage THEN
          DELETE FROM lazaret.damages WHERE damage = OLD.damage;
          INSERT INTO lazaret.damages SELECT damage, date FROM lazaret.sightings WHERE damage = OLD.damage
            ORDER BY date DESC LIMIT 1 ON CONFLICT (damage) DO UPDATE SET latest = excluded.latest;
        END IF;
      END IF;
      IF TG_OP <> 'DELETE' THEN
        INSERT INTO lazaret.tallies VALUES ('seen', NEW.damage, NEW.version, 1);
        INSERT INTO lazaret.damages AS known VALUES (NEW.damage, NEW.date)
          ON CONFLICT (damage) DO UPDATE SET latest = excluded.latest WHERE known.latest < excluded.latest;
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_sighting AFTER INSERT OR DELETE OR UPDATE ON lazaret.sightings
      FOR EACH ROW EXECUTE FUNCTION lazaret.count_sighting();

    -- Words are found by their groups of three letters where the server has them; else each row is looked at.
    DO $$
    DECLARE place text;
    BEGIN
      BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA lazaret;
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
      SELECT nspname INTO place FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'pg_trgm';
      IF place IS NOT NULL THEN
        EXECUTE format('CREATE INDEX bundles_by_words ON lazaret.bundles USING gin (words %I.gin_trgm_ops)', place);
      END IF;
    END $$;
    """

  // Lists by keys, similar damage by marks.
  private static let second = """
    CREATE INDEX bundles_of_sender ON lazaret.bundles (sender, date DESC, id DESC);
    DROP INDEX lazaret.jobs_failed;
    CREATE INDEX jobs_by_state ON lazaret.jobs (state, id);
    CREATE TABLE lazaret.damage_bands (
      band bigint NOT NULL, damage text COLLATE "C" NOT NULL, PRIMARY KEY (band, damage)
    );
    """

  private static let third = """
    CREATE TABLE lazaret.removals (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bundle text COLLATE "C" NOT NULL, date text NOT NULL,
      rule text NOT NULL, sender text NOT NULL, arrived text NOT NULL, sha256 text NOT NULL, damage text, bytes bigint NOT NULL,
      cleared boolean NOT NULL DEFAULT false
    );
    CREATE INDEX removals_not_cleared ON lazaret.removals (number) WHERE NOT cleared;
    CREATE INDEX removals_by_bundle ON lazaret.removals (bundle);
    """

  // The total of all senders, formerly summed. The trigger blocks other writers until it is filled.
  private static let sixth = """
    CREATE FUNCTION lazaret.count_used() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE before bigint := 0; after bigint := 0;
    BEGIN
      IF TG_OP <> 'INSERT' THEN before := OLD.used; END IF;
      IF TG_OP <> 'DELETE' THEN after := NEW.used; END IF;
      IF before <> after THEN INSERT INTO lazaret.tallies VALUES ('used', 'bytes', NULL, after - before); END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_used AFTER INSERT OR DELETE OR UPDATE OF used ON lazaret.senders
      FOR EACH ROW EXECUTE FUNCTION lazaret.count_used();
    INSERT INTO lazaret.tallies SELECT 'used', 'bytes', NULL, sum(used)::bigint FROM lazaret.senders HAVING sum(used) <> 0;
    """

  private static let fifth = "ALTER TABLE lazaret.bundles ADD COLUMN received text COLLATE \"C\";"

  // Jobs waiting for their environment; paged open uploads.
  private static let eighth = """
    ALTER TABLE lazaret.jobs ADD COLUMN hindered boolean NOT NULL DEFAULT false;
    CREATE INDEX jobs_hindered ON lazaret.jobs (code) WHERE hindered;
    CREATE INDEX uploads_open_by_id ON lazaret.uploads (id) WHERE state = 'open';
    """

  // The version that salvaged a bundle, and batches of salvages.
  private static let fourth = """
    ALTER TABLE lazaret.bundles ADD COLUMN salvaged_by text COLLATE "C";
    CREATE TABLE lazaret.batches (
      number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, damage text COLLATE "C" NOT NULL, version text NOT NULL,
      date text NOT NULL, total bigint NOT NULL
    );
    CREATE INDEX batches_by_damage ON lazaret.batches (damage, number);
    CREATE TABLE lazaret.batch_items (
      batch bigint NOT NULL, bundle text COLLATE "C" NOT NULL, change text, before text, after text,
      recovered_before bigint, doubtful_before bigint, lost_before bigint, recovered_after bigint, doubtful_after bigint,
      lost_after bigint, PRIMARY KEY (batch, bundle)
    );
    CREATE INDEX batch_items_open ON lazaret.batch_items (bundle, batch) WHERE change IS NULL;
    """

  // Counts per statement: changing a million rows updates each count once, and pages read a few rows per count.
  static let seventh = """
    -- Adds to a count: to one of its rows that no other transaction is adding to, so that none waits; where there is none, a new one.
    CREATE FUNCTION lazaret.tally(of_kind text, of_name text, of_part text, change bigint) RETURNS void LANGUAGE plpgsql
      SET search_path = pg_catalog, pg_temp AS $$
    DECLARE place tid;
    BEGIN
      IF of_part IS NULL THEN
        SELECT ctid INTO place FROM lazaret.tallies WHERE kind = of_kind AND name = of_name AND part IS NULL
          LIMIT 1 FOR UPDATE SKIP LOCKED;
      ELSE
        SELECT ctid INTO place FROM lazaret.tallies WHERE kind = of_kind AND name = of_name AND part = of_part
          LIMIT 1 FOR UPDATE SKIP LOCKED;
      END IF;
      IF FOUND THEN
        UPDATE lazaret.tallies SET n = n + change WHERE ctid = place;
        IF FOUND THEN RETURN; END IF;
      END IF;
      INSERT INTO lazaret.tallies (kind, name, part, n) VALUES (of_kind, of_name, of_part, change);
    END $$;

    -- Adds to what senders use; of several their rows are locked in one order.
    CREATE FUNCTION lazaret.use_more(names text[], changes bigint[]) RETURNS void LANGUAGE plpgsql
      SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF names IS NULL THEN RETURN; END IF;
      IF cardinality(names) > 1 THEN
        PERFORM 1 FROM lazaret.senders WHERE name = ANY(names) ORDER BY name FOR NO KEY UPDATE;
      END IF;
      UPDATE lazaret.senders SET used = used + change FROM unnest(names, changes) AS changed (sender, change)
        WHERE name = changed.sender;
    END $$;

    DROP FUNCTION lazaret.count_job() CASCADE;
    DROP FUNCTION lazaret.count_bundle() CASCADE;
    DROP FUNCTION lazaret.count_upload() CASCADE;
    DROP FUNCTION lazaret.count_sighting() CASCADE;
    DROP FUNCTION lazaret.count_used() CASCADE;

    CREATE FUNCTION lazaret.count_jobs() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM lazaret.tally('jobs', state, NULL, n) FROM (
          SELECT state, count(*) AS n FROM come GROUP BY state
        ) AS changed;
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM lazaret.tally('jobs', state, NULL, -n) FROM (
          SELECT state, count(*) AS n FROM gone GROUP BY state
        ) AS changed;
      ELSE
        PERFORM lazaret.tally('jobs', state, NULL, n) FROM (
          SELECT state, sum(one)::bigint AS n FROM (SELECT state, 1 AS one FROM come UNION ALL SELECT state, -1 FROM gone) AS each
            GROUP BY state HAVING sum(one) <> 0
        ) AS changed;
      END IF;
      RETURN NULL;
    END $$;
    \(triggers(on: "jobs"))

    -- Bundles by state, by damage, and those that can be salvaged again by damage and by the version that salvaged them last.
    CREATE FUNCTION lazaret.count_bundles() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(n ORDER BY sender)) FROM (
          SELECT sender, sum(bytes + coalesce(placed, 0))::bigint AS n FROM come GROUP BY sender
        ) AS changed;
        PERFORM lazaret.tally(kind, name, part, n) FROM (
          SELECT kind, name, part, count(*) AS n FROM come, LATERAL (VALUES
              ('bundles', state, NULL), ('kept', damage, NULL),
              ('salvaged', CASE state WHEN 'quarantined' THEN damage END, salvaged_by)
            ) AS known (kind, name, part) WHERE name IS NOT NULL GROUP BY kind, name, part
        ) AS changed;
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(-n ORDER BY sender)) FROM (
          SELECT sender, sum(bytes + coalesce(placed, 0))::bigint AS n FROM gone GROUP BY sender
        ) AS changed;
        PERFORM lazaret.tally(kind, name, part, -n) FROM (
          SELECT kind, name, part, count(*) AS n FROM gone, LATERAL (VALUES
              ('bundles', state, NULL), ('kept', damage, NULL),
              ('salvaged', CASE state WHEN 'quarantined' THEN damage END, salvaged_by)
            ) AS known (kind, name, part) WHERE name IS NOT NULL GROUP BY kind, name, part
        ) AS changed;
      ELSE
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(n ORDER BY sender)) FROM (
          SELECT sender, sum(one)::bigint AS n FROM (
              SELECT sender, bytes + coalesce(placed, 0) AS one FROM come
                UNION ALL SELECT sender, -bytes - coalesce(placed, 0) FROM gone
            ) AS each GROUP BY sender HAVING sum(one) <> 0
        ) AS changed;
        PERFORM lazaret.tally(kind, name, part, n) FROM (
          SELECT kind, name, part, sum(one)::bigint AS n FROM (
              SELECT state, damage, salvaged_by, 1 AS one FROM come UNION ALL SELECT state, damage, salvaged_by, -1 FROM gone
            ) AS each, LATERAL (VALUES
              ('bundles', state, NULL), ('kept', damage, NULL),
              ('salvaged', CASE state WHEN 'quarantined' THEN damage END, salvaged_by)
            ) AS known (kind, name, part) WHERE name IS NOT NULL GROUP BY kind, name, part HAVING sum(one) <> 0
        ) AS changed;
      END IF;
      RETURN NULL;
    END $$;
    \(triggers(on: "bundles"))

    CREATE FUNCTION lazaret.count_uploads() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(n ORDER BY sender)) FROM (
          SELECT sender, sum(length)::bigint AS n FROM come WHERE state = 'open' GROUP BY sender
        ) AS changed;
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(-n ORDER BY sender)) FROM (
          SELECT sender, sum(length)::bigint AS n FROM gone WHERE state = 'open' GROUP BY sender
        ) AS changed;
      ELSE
        PERFORM lazaret.use_more(array_agg(sender ORDER BY sender), array_agg(n ORDER BY sender)) FROM (
          SELECT sender, sum(one)::bigint AS n FROM (
              SELECT sender, length AS one FROM come WHERE state = 'open'
                UNION ALL SELECT sender, -length FROM gone WHERE state = 'open'
            ) AS each GROUP BY sender HAVING sum(one) <> 0
        ) AS changed;
      END IF;
      RETURN NULL;
    END $$;
    \(triggers(on: "uploads"))

    CREATE FUNCTION lazaret.count_senders() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE change bigint := 0;
    BEGIN
      IF TG_OP <> 'DELETE' THEN change := (SELECT coalesce(sum(used), 0) FROM come); END IF;
      IF TG_OP <> 'INSERT' THEN change := change - (SELECT coalesce(sum(used), 0) FROM gone); END IF;
      IF change <> 0 THEN PERFORM lazaret.tally('used', 'bytes', NULL, change); END IF;
      RETURN NULL;
    END $$;
    \(triggers(on: "senders"))

    CREATE FUNCTION lazaret.count_sightings() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE left_ones text[];
    BEGIN
      IF TG_OP = 'INSERT' THEN
        PERFORM lazaret.tally('seen', damage, version, n) FROM (
          SELECT damage, version, count(*) AS n FROM come GROUP BY damage, version
        ) AS changed;
      ELSIF TG_OP = 'DELETE' THEN
        PERFORM lazaret.tally('seen', damage, version, -n) FROM (
          SELECT damage, version, count(*) AS n FROM gone GROUP BY damage, version
        ) AS changed;
        left_ones := (SELECT array_agg(DISTINCT damage) FROM gone);
      ELSE
        PERFORM lazaret.tally('seen', damage, version, n) FROM (
          SELECT damage, version, sum(one)::bigint AS n FROM (
              SELECT damage, version, 1 AS one FROM come UNION ALL SELECT damage, version, -1 FROM gone
            ) AS each GROUP BY damage, version HAVING sum(one) <> 0
        ) AS changed;
        left_ones := (
          SELECT array_agg(DISTINCT damage) FROM gone
            WHERE NOT EXISTS (SELECT 1 FROM come WHERE come.store = gone.store AND come.damage = gone.damage)
        );
      END IF;
      IF left_ones IS NOT NULL THEN
        -- What another transaction has added meanwhile is seen by the second statement.
        DELETE FROM lazaret.damages WHERE damage = ANY(left_ones);
        INSERT INTO lazaret.damages SELECT damage, max(date) FROM lazaret.sightings WHERE damage = ANY(left_ones) GROUP BY damage
          ON CONFLICT (damage) DO UPDATE SET latest = excluded.latest;
      END IF;
      IF TG_OP <> 'DELETE' THEN
        INSERT INTO lazaret.damages AS known SELECT damage, max(date) FROM come GROUP BY damage ORDER BY damage
          ON CONFLICT (damage) DO UPDATE SET latest = excluded.latest WHERE known.latest < excluded.latest;
      END IF;
      RETURN NULL;
    END $$;
    \(triggers(on: "sightings"))

    -- What was noted before, in one row each. The triggers keep other writers out until this is done.
    ALTER TABLE lazaret.tallies SET (fillfactor = 50);
    DROP INDEX lazaret.tallies_by_name;
    WITH gone AS (DELETE FROM lazaret.tallies RETURNING kind, name, part, n)
      INSERT INTO lazaret.tallies SELECT kind, name, part, sum(n)::bigint FROM gone GROUP BY kind, name, part HAVING sum(n) <> 0;
    INSERT INTO lazaret.tallies SELECT 'salvaged', damage, salvaged_by, count(*) FROM lazaret.bundles
      WHERE damage IS NOT NULL AND state = 'quarantined' GROUP BY damage, salvaged_by;
    CREATE INDEX tallies_by_part ON lazaret.tallies (kind, name, part);
    """

  private static func triggers(on table: String) -> String {
    """
    CREATE TRIGGER count_\(table)_come AFTER INSERT ON lazaret.\(table)
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_\(table)();
    CREATE TRIGGER count_\(table)_gone AFTER DELETE ON lazaret.\(table)
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_\(table)();
    CREATE TRIGGER count_\(table)_changed AFTER UPDATE ON lazaret.\(table)
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_\(table)();
    """
  }
}
