"""Operations outside of turns: cancels, forks, reverts, compaction, titles, calls of people."""
