"""Figures drawn with Matplotlib, one kind a file."""
