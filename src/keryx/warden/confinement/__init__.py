"""How a keeper confines itself before it serves. Standard library only, Python 3.8 and later.

`confine` puts all walls up and reports the gaps; each other module is one kind of wall.
"""
