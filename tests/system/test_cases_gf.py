"""The catalogue's theme GF against a running exeatd; see cases.py and docs/cases.md."""
from case_world import world
from cases import run_files

run_files(["gf"], world)
