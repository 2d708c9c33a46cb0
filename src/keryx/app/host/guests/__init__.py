"""Programs that host sessions of their own in a home that another process owns."""
