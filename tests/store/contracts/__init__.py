"""The contract suites of stores: the same assertions over every implementation."""
