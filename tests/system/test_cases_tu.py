"""The catalogue's theme TU against a running exeatd; see cases.py and docs/cases.md."""
from case_world_outside import tls_world
from cases import run_files

run_files(["tu"], tls_world)
