"""The catalogue's themes PN, HD, AU against a running exeatd; see cases.py and docs/cases.md."""
from case_world import world
from cases import run_files

run_files(["pn", "hd", "au"], world)
