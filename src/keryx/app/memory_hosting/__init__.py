"""Makes the memory of a host, and keeps the host working while something of it is broken."""
