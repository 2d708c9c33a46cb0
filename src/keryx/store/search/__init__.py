"""What a search means: which texts there are, what their words are, which of them fit."""
