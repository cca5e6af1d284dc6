"""A fit over several machines: its data, cut into shards, and the model that they write together.

Users and items keep the numbers that they have on one machine. A shard is a run of them; each rank,
one of the processes that fit, has a run of shards. Nobody has the interactions of others.
"""
