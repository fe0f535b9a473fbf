"""The catalogue's themes DN and IP (addresses in answers) against a running exeatd; see cases.py and docs/cases.md."""
import sys

from case_scene import in_own_network
from case_world_outside import dns_world
from cases import run_files

if not in_own_network():
    print("skip cases of DN and IP: a network of its own needs root")
    sys.exit(0)
run_files(["dn"], dns_world)
