extension PostgresSchema {
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
    CREATE TRIGGER count_jobs_come AFTER INSERT ON lazaret.jobs
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_jobs();
    CREATE TRIGGER count_jobs_gone AFTER DELETE ON lazaret.jobs
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_jobs();
    CREATE TRIGGER count_jobs_changed AFTER UPDATE ON lazaret.jobs
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_jobs();

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
    CREATE TRIGGER count_bundles_come AFTER INSERT ON lazaret.bundles
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_bundles();
    CREATE TRIGGER count_bundles_gone AFTER DELETE ON lazaret.bundles
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_bundles();
    CREATE TRIGGER count_bundles_changed AFTER UPDATE ON lazaret.bundles
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_bundles();

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
    CREATE TRIGGER count_uploads_come AFTER INSERT ON lazaret.uploads
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_uploads();
    CREATE TRIGGER count_uploads_gone AFTER DELETE ON lazaret.uploads
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_uploads();
    CREATE TRIGGER count_uploads_changed AFTER UPDATE ON lazaret.uploads
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_uploads();

    CREATE FUNCTION lazaret.count_senders() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    DECLARE change bigint := 0;
    BEGIN
      IF TG_OP <> 'DELETE' THEN change := (SELECT coalesce(sum(used), 0) FROM come); END IF;
      IF TG_OP <> 'INSERT' THEN change := change - (SELECT coalesce(sum(used), 0) FROM gone); END IF;
      IF change <> 0 THEN PERFORM lazaret.tally('used', 'bytes', NULL, change); END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER count_senders_come AFTER INSERT ON lazaret.senders
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_senders();
    CREATE TRIGGER count_senders_gone AFTER DELETE ON lazaret.senders
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_senders();
    CREATE TRIGGER count_senders_changed AFTER UPDATE ON lazaret.senders
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_senders();

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
    CREATE TRIGGER count_sightings_come AFTER INSERT ON lazaret.sightings
      REFERENCING NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_sightings();
    CREATE TRIGGER count_sightings_gone AFTER DELETE ON lazaret.sightings
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_sightings();
    CREATE TRIGGER count_sightings_changed AFTER UPDATE ON lazaret.sightings
      REFERENCING OLD TABLE AS gone NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION lazaret.count_sightings();

    -- What was noted before, in one row each. The triggers keep other writers out until this is done.
    ALTER TABLE lazaret.tallies SET (fillfactor = 50);
    DROP INDEX lazaret.tallies_by_name;
    WITH gone AS (DELETE FROM lazaret.tallies RETURNING kind, name, part, n)
      INSERT INTO lazaret.tallies SELECT kind, name, part, sum(n)::bigint FROM gone GROUP BY kind, name, part HAVING sum(n) <> 0;
    INSERT INTO lazaret.tallies SELECT 'salvaged', damage, salvaged_by, count(*) FROM lazaret.bundles
      WHERE damage IS NOT NULL AND state = 'quarantined' GROUP BY damage, salvaged_by;
    CREATE INDEX tallies_by_part ON lazaret.tallies (kind, name, part);
    """
}
