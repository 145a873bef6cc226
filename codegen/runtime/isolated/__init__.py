"""Compiled programs run in a process of their own, so that what they do harms nobody."""

from __future__ import annotations

from .parent import OnSample, Outcome, Plan, Runner

__all__ = ["OnSample", "Outcome", "Plan", "Runner"]
