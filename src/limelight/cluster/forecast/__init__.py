"""What a fit on a cluster would move, hold and take, from its size alone."""
