-- What has ended, in the order in which it is removed.
CREATE INDEX executions_ended ON executions (ended_at, id) WHERE outcome IS NOT NULL;
