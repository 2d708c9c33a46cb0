"""Limits of money, and the export of usage."""
