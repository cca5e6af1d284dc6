"""Settings that validation users prefer: what is tried, how, and what was found."""
