"""Guests: programs that host their own sessions in a home that another process owns."""
