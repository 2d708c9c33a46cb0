"""Turns that are run again."""
