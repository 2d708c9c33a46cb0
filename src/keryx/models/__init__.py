"""Models of several providers, behind one port."""
