"""The catalogue's themes HC, IP, WC against a running exeatd; see cases.py and docs/cases.md."""
from case_world import world
from cases import run_files

run_files(["hc", "ip", "wc"], world)
