-- What callers see of the state: `Record::shown` in SQL. A test compares the two in every case.
ALTER TABLE executions ADD COLUMN
    told TEXT GENERATED ALWAYS AS (COALESCE(outcome, state)) VIRTUAL;
-- What made it, and by which schedule: `Trigger::kind` and `Trigger::schedule` in SQL.
ALTER TABLE executions ADD COLUMN
    made_by TEXT GENERATED ALWAYS AS (
        CASE json_type(origin) WHEN 'text' THEN origin ->> '$' ELSE 'schedule' END
    ) VIRTUAL;
ALTER TABLE executions ADD COLUMN
    schedule TEXT GENERATED ALWAYS AS (
        COALESCE(origin ->> '$.schedule.id', origin ->> '$.schedule.schedule')
    ) VIRTUAL;

-- Listings are read in the order of these; none is sorted.
CREATE INDEX executions_by_context ON executions (context, id);
CREATE INDEX executions_by_state ON executions (told, id);
CREATE INDEX executions_by_failure ON executions (failure_code, id) WHERE failure_code IS NOT NULL;
CREATE INDEX executions_by_schedule ON executions (schedule, id) WHERE schedule IS NOT NULL;
