"""What the benchmarks of turns and streams share. No part of it is a benchmark by itself."""
