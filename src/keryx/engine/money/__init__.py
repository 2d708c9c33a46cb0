"""Money: what turns, sessions and days may spend, and the one who knows what they spent."""
