"""Judges what a script does: its level, reasons and needs."""
