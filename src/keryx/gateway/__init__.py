"""Chat platforms: people talk to the sessions of a home from Telegram or through a signed webhook.

A front end like the page: it sends commands and reads events, attached to the host of the home.
"""
