"""All users of a saved model, piece by piece, on one machine or many."""
