"""What a terminal shows and asks: prompts, running turns, outcomes of calls."""
