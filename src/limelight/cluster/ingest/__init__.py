"""From files to shards: every rank reads some files and keeps the rows that are its own."""
