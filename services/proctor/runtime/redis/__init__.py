"""What is kept in Redis by scripts that are one step each: presence, tries, and what the ledger stands on."""
