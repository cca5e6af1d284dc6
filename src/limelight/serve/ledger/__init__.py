"""What was shown over a window of time, and what keeps it through kills."""
