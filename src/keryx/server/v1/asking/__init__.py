"""Requests: their bodies, and how each begins its turn."""
