"""Answers: what a turn says, as clients read it."""
