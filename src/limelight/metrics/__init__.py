"""Measuring lists: how accurate they are and how evenly they share exposure.

Functions share names with modules here (`exposure`, `audit`), so nothing is re-exported;
import from the modules or use the public names of `limelight`.
"""
