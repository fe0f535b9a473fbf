"""The catalogue's themes RF, RS against a running exeatd; see cases.py and docs/cases.md."""
from case_world import world
from cases import run_files

run_files(["rf", "rs"], world)
