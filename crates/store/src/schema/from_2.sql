-- Step from version 2 of the tables to version 3: hops of teams.

ALTER TABLE executions DROP COLUMN made_by;
ALTER TABLE executions ADD COLUMN made_by TEXT GENERATED ALWAYS AS (
    CASE
        WHEN json_type(origin) = 'text' THEN origin ->> '$'
        WHEN origin -> '$.hop' IS NOT NULL THEN 'hop'
        ELSE 'schedule'
    END
) VIRTUAL;
ALTER TABLE executions ADD COLUMN parent TEXT
    GENERATED ALWAYS AS (origin ->> '$.hop.parent') VIRTUAL;
CREATE INDEX executions_by_parent ON executions (parent, id) WHERE parent IS NOT NULL;
