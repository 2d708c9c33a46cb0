"""Reading a damaged database without SQLite, which stops at the first invalid page.

Every page is read by itself, whether another page points to it or not. Nothing is written.
"""
