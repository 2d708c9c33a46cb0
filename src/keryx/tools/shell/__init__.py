"""The shell: what a command line says, and how much harm it could do."""
