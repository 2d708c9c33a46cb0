"""A generic platform: signed JSON over HTTP, in both directions."""
