"""A server with the routes of Honcho's API v3 that refuses whatever the real one would not expect.

It runs in a process of its own, so that it can be killed; what it stored survives that.
"""
