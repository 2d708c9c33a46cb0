"""The HTTP surface: the API with its event streams, who may use it, and the built page."""
