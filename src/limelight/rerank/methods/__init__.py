"""The re-rankers, one method a file."""
