"""Reading a damaged database without SQLite, which gives up where a page makes no sense.

Every page is looked at by itself, whoever points to it or no longer does. Nothing is written.
"""
