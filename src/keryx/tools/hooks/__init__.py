"""Hooks: programs of people that run before and after calls."""
