"""What people can write after a slash in a chat, except for messages to the agent."""
