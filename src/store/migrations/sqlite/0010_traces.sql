-- Where in a trace the execution was asked, when it was asked first: JSON, as the headers have it.
ALTER TABLE executions ADD COLUMN trace TEXT;
