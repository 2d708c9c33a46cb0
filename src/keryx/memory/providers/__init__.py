"""The providers that Keryx has: files of notes, an index of vectors, and Honcho."""
