"""The record of an audit: criteria that were fixed beforehand, what was found, and the verdicts."""
