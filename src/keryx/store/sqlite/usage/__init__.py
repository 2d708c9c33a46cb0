"""The tables of usage: tokens, money and calls of tools by quarters of an hour. Blocking code."""
