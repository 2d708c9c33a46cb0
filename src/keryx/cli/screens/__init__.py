"""What people see at a terminal, and are asked there."""
