"""Elastic runs on two hosts whose link breaks (elastic.py has those of one host): workers on the other side are lost and come back, and every step is in the log once
with the loss of a run that was left alone.

  elastic_hosts.py [--seed S] [--runs N]    more random ones"""
import argparse

from elastic import STEPS, ElasticRun, at_random
from slow_link import SlowHosts
from support import Checks, Folder, need_tools


def link_is_cut():
    """For longer than silence is borne: the first worker's host goes on, and the other's workers come back."""
    # Enough steps that the run has not ended when they try to connect again, some seconds after the link is mended.
    with SlowHosts() as hosts, Folder() as folder, ElasticRun(folder, hosts=hosts, last_call=1.5, steps=4 * STEPS) as run_:
        run_.start(0, 1, 2, 3)
        run_.wait_for_step(40)
        hosts.down = True
        run_.wait_for_workers(2)
        run_.wait_for_progress()
        hosts.down = False
        run_.wait_for_workers(4)
        return run_.end()


def link_at_random(seed):
    with SlowHosts(seed) as hosts:
        return at_random(seed, hosts)


if __name__ == "__main__":
    need_tools()
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    checks = Checks()
    checks.check("the link is cut and mended", link_is_cut)
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        checks.check(f"random, seed {seed}", link_at_random, seed)
    checks.exit()
