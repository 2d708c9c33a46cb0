"""The seams. Read this package first: each file is one Protocol and the words that it needs."""
