"""What the file tools give a script: the whole of what is there, and nothing else."""
