"""What is shown and kept of calls while they run, those that scripts make included."""
