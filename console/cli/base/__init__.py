"""What every command stands on: a run and its statuses, the journal's writing, words that several say."""
