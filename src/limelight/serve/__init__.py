"""Requests answered live: lists for who asks now, and the exposure that all answers give."""
