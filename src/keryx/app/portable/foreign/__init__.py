"""Conversations that other programs wrote: read strictly, whole or not at all."""
