"""A provider that searches by meaning: an index of vectors, and of words, over one file."""
