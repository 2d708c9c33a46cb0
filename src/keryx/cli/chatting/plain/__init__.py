"""The plain lines of `keryx chat`: for screen readers, dumb terminals and pipes."""
