"""The routes of the settings screen."""
