"""What the wire formats share: the exchange, the pieces of a reply, the encoding of parts."""
