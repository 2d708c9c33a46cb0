"""How what a script does becomes a level, reasons and needs."""
