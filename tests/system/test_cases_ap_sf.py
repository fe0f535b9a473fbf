"""The catalogue's themes AP and SF against a running exeatd; see cases.py and docs/cases.md."""
from case_world import world
from cases import run_files

run_files(["ap", "sf"], world)
