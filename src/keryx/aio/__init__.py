"""The concurrency kit: scopes, threads and event loops. It knows nothing of agents."""
