"""From a target of exposure to the strength that meets it."""
