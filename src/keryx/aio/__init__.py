"""The concurrency kit. It knows scopes, threads, loops and processes, and nothing of agents."""
