"""The record store: audits, decisions and the variant library as rows, and how their tables change."""
