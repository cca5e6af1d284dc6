"""Figures and reports to look at."""
