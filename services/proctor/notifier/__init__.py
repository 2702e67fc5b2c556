"""Tells people and programs of decisions: mail, chats, and CloudEvents over HTTP."""
