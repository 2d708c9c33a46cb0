"""The conversation of `keryx chat`: what a person types, what the session does, what is shown."""
