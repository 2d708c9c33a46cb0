"""From the log to what a model is told. Pure: the same log gives the same prompt."""
