"""Runs the hooks of people around a call, and does what they answer."""
