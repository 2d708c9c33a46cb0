"""Model servers: which run on this machine, which models they have, and whether a key works."""
