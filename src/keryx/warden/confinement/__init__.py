"""What a keeper builds around itself before it serves. Standard library only, Python 3.8 and later.

`confine` puts the walls up and says which gaps are left; each other module is one kind of wall.
"""
