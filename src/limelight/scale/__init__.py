"""One fit on many machines."""
