"""A model's factors, prices and index for other stacks."""
