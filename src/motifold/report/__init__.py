"""The report of a fit."""
