"""Tools that make and read media: images, speech, and transcripts of it."""
