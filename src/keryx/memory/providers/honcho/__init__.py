"""The memory provider `honcho`: memories and turns at a Honcho server, through its own client."""
