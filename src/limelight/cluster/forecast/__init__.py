"""Forecasts of the traffic, memory and time of a fit on a cluster, from its size alone."""
