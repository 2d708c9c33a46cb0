"""The part of a session that remembers: what its log hands to the memory, and what calls use."""
