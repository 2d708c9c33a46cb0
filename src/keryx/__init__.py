"""Keryx runs AI agents whose work can be watched, steered, stopped and resumed at any instant."""
