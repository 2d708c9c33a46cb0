"""The routes of the API, by what they are about. They validate, and ask the sessions."""
