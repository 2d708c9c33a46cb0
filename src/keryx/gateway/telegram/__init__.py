"""Telegram: long polling or webhook, through aiogram."""
