#!/usr/bin/env python3
"""Checks that every metric a Grafana dashboard asks for is one that the server has.

    grafana.py DASHBOARD.json URL-OF-METRICS
"""
import json, re, sys, urllib.request

board = json.load(open(sys.argv[1]))
text = urllib.request.urlopen(sys.argv[2]).read().decode()
there = set(re.findall(r"^(windrow_\w+)", text, re.M))
queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
asked = {name for query in queries for name in re.findall(r"windrow_\w+", query)}
missing = sorted(asked - there)
print(f"{len(queries)} queries of {len(board['panels'])} panels ask for {len(asked)} metrics; missing: {missing or 'none'}")
sys.exit(bool(missing) or not asked)
