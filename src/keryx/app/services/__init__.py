"""What a host provides to its sessions: files, attachments, places and the parts of prompts."""
