"""The terminal of `keryx chat`: finished rows go to the scrollback, a small region stays live."""
