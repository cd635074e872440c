-- How the execution was parked last in its turn, and what it has used up: JSON.
ALTER TABLE executions ADD COLUMN parked TEXT;
ALTER TABLE executions ADD COLUMN spent TEXT;

-- What each agent has used up in a day of its zone. Costs are millionths of a US dollar, times are
-- milliseconds.
CREATE TABLE spending (
    agent TEXT NOT NULL,
    day TEXT NOT NULL, -- As in ISO 8601.
    turns INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL,
    cost_micros INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    PRIMARY KEY (agent, day)
) STRICT, WITHOUT ROWID;
