#!/usr/bin/env python3
"""Runs a model under several budgets and prints what the kernel says: for docs/BUDGETS.md.

Each budget runs twice in a memory control group whose limit is exactly the budget: the same ids must come out as under
the first budget. The second run generates more tokens, so the difference tells what one token reads. Needs root.

  scripts/measure_budgets.py MODEL --budgets floor,4G,16G [--tokens 2,4] [--ids 1,2,3]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


class Group:
    """A memory control group with a limit, gone when closed."""

    def __init__(self, limit_bytes, is_limited):
        self.is_v1 = (V1 / "memory.limit_in_bytes").exists()
        self.path = (V1 if self.is_v1 else V2) / f"headrace-measure-{os.getpid()}"
        self.path.mkdir()
        if not is_limited:
            return
        if self.is_v1:
            self.write("memory.limit_in_bytes", limit_bytes)
        else:
            self.write("memory.max", limit_bytes)
            self.write("memory.swap.max", 0)

    def write(self, name, value):
        """One control file."""
        (self.path / name).write_text(str(value), encoding="ascii")

    def peak_bytes(self):
        """Most that the group held."""
        name = "memory.max_usage_in_bytes" if self.is_v1 else "memory.peak"
        return int((self.path / name).read_text(encoding="ascii"))

    def enter(self):
        """For the child, before it becomes the program."""
        self.write("cgroup.procs", os.getpid())

    def close(self):
        """The group is empty by now."""
        self.path.rmdir()


def run(options, budget_bytes, tokens):
    """One run in a group of its own: ids, statistics, peak of the group."""
    group = Group(budget_bytes, not options.no_limit)
    try:
        with tempfile.NamedTemporaryFile() as stats:
            command = [options.headrace, "run", options.model, "--ids", options.ids, "-n", str(tokens), "--json",
                       "--budget", str(budget_bytes), "--stats", stats.name, "--ctx", str(options.ctx)]
            done = subprocess.run(command + options.more, stdout=subprocess.PIPE, check=False, preexec_fn=group.enter)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
            statistics = json.loads(pathlib.Path(stats.name).read_text(encoding="utf-8"))
            return json.loads(done.stdout)["ids"], statistics, group.peak_bytes()
    finally:
        group.close()


def plan(options, budget):
    """The plan of a budget, also one below the floor."""
    command = [options.headrace, "plan", options.model, "--budget", budget, "--json", "--ctx", str(options.ctx)]
    done = subprocess.run(command + options.more, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return json.loads(done.stdout)


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--budgets", default="floor", help="separated by commas")
    parser.add_argument("--tokens", default="2,4", help="generated in the first and in the second run")
    parser.add_argument("--ids", default="1", help="the prompt")
    parser.add_argument("--ctx", type=int, default=4096)
    parser.add_argument("--no-limit", action="store_true", help="let the group only count")
    parser.add_argument("--headrace", default="build/release/headrace")
    parser.add_argument("more", nargs="*", help="further options for the program, after --")
    return parser.parse_args()


def main():
    """One row per budget."""
    options = arguments()
    few, many = (int(part) for part in options.tokens.split(","))
    print("| budget | pinned layers | slots | cgroup peak | peak RSS | read per token | planned | seconds per token |")
    print("|---|---|---|---|---|---|---|---|")
    expected = None
    for budget in options.budgets.split(","):
        planned = plan(options, budget)
        bytes_ = planned["budget_bytes"]
        first_ids, first, first_peak = run(options, bytes_, few)
        ids, stats, peak = run(options, bytes_, many)
        expected = expected or ids
        if ids != expected or first_ids != expected[:few]:
            sys.exit(f"budget {budget}: other tokens: {ids}, {first_ids}, not {expected}")
        read = (stats["bytes_read"] - first["bytes_read"]) / (many - few)
        seconds = stats["decode_s"] / max(1, many - 1)
        print(f"| {bytes_ / 1e9:.3f} GB ({bytes_}) | {stats['pinned_layers']} | {stats['expert_slots']} "
              f"| {max(peak, first_peak) / 1e9:.3f} GB | {stats['peak_rss_bytes'] / 1e9:.3f} GB | {read / 1e9:.3f} GB "
              f"| {planned['bytes_per_token'] / 1e9:.3f} GB ({100 * (read / max(1, planned['bytes_per_token']) - 1):+.1f} %) "
              f"| {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
