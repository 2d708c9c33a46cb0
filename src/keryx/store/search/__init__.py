"""The meaning of a search: which texts are searched, what a word is, which texts match."""
