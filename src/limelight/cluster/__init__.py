"""Fits and lists on more than one machine; only the files named after Ray know it."""
