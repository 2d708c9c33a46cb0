"""Sends what the gateway has to say: once, in order and within the limits of the platform."""
