"""The APIs that the scripted model server speaks: what each takes, and how each answers."""
