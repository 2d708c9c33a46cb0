"""Model servers: those that run here, what each offers, and whether a key opens one."""
