"""What a person changes on the settings screen or with `keryx config`."""
