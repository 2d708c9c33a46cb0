"""What a workspace brings along, and whether a person trusts it."""
