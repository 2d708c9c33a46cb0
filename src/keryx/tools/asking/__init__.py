"""Tools that ask models: about images, several at once, and about earlier sessions."""
