"""Models that run on this machine, as a host uses and pulls them."""
