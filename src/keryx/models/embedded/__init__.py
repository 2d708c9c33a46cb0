"""Models that run on this machine, each in a child process: SmolLM2, or any GGUF file."""
