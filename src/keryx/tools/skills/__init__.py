"""Skills: folders with instructions and scripts, in the public format of `SKILL.md`."""
