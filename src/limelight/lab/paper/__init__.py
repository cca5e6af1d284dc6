"""The experiments of the exADMM paper, from a file of interactions to its tables and figures."""
