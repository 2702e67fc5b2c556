"""Triage of wrong answers: which of them the model got wrong, and which the protocol did. Pure and deterministic."""

from proctor.grading.triage.deciding import Triage, WrongAnswer, looks_cut, triage

__all__ = ["Triage", "WrongAnswer", "looks_cut", "triage"]
