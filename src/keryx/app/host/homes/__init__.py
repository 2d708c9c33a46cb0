"""Homes: which process owns one, and the address that its host and its guests are reached at."""
