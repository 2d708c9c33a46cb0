"""A turn: the loop, the reply that streams, the facts that it states, what it sees of its calls."""
