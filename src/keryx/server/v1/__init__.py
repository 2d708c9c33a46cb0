"""The OpenAI-compatible API: agents of Keryx as models, for any client of OpenAI's API."""
