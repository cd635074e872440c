-- Step from version 4 of the tables to version 5: interactions of the members of teams.

CREATE TABLE interaction_runs (
    run BLOB NOT NULL,
    interaction BLOB NOT NULL REFERENCES interactions (id) ON DELETE CASCADE,
    agent TEXT NOT NULL,
    depth INTEGER NOT NULL,
    PRIMARY KEY (run, interaction)
) STRICT, WITHOUT ROWID;
CREATE INDEX interaction_runs_by_interaction ON interaction_runs (interaction, depth);
CREATE INDEX interactions_open_by_id ON interactions (id) WHERE state = 'open';

INSERT INTO interaction_runs (run, interaction, agent, depth)
WITH RECURSIVE runs (id, interaction, depth) AS (
    SELECT unhex(executions.parent, '-'), interactions.id, 1
    FROM interactions JOIN executions ON executions.id = interactions.execution
    WHERE interactions.state = 'open' AND executions.parent IS NOT NULL
    UNION ALL
    SELECT unhex(executions.parent, '-'), interaction, depth + 1
    FROM runs JOIN executions ON executions.id = runs.id WHERE executions.parent IS NOT NULL
)
SELECT executions.id, interaction, executions.agent, depth
FROM runs JOIN executions ON executions.id = runs.id;

UPDATE executions
SET asks = asks + (SELECT count(*) FROM interaction_runs WHERE run = executions.id)
WHERE outcome IS NULL AND id IN (SELECT run FROM interaction_runs);
