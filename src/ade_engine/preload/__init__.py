"""Modules that a zygote imports before it forks jobs.

Importing one does the slow work that every job of a kind would otherwise repeat: it imports
libraries, reads fonts and weights, fills caches. None of them may start a thread, because a process
with threads cannot be forked safely.
"""
