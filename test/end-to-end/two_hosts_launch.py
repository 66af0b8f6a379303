"""Launching over two hosts (network namespaces joined by a veth pair): the result is one host's; a task that is killed,
a cable that is cut and a task that never comes end the other one, which names it.
"""
from hosts import TwoHosts
from support import BIN, Checks, Folder, must, need_tools

TRAINER = BIN / "drt-test-trainer"


def trainer(*flags):
    return [TRAINER, "--hosts", ",".join(TwoHosts.addresses), *flags]


def weight(out):
    """What the trainer computed."""
    lines = [line for line in out.splitlines() if line.startswith("done:")]
    return lines[0] if lines else None


def missing(out, *texts):
    return [f"'{text}' is not in:\n{out}" for text in texts if text not in out]


def same_as_one_host():
    alone = must([TRAINER, "--hosts", "localhost,localhost", "--steps", "50"])
    with TwoHosts() as hosts:
        tasks = [hosts.start_task(i, trainer("--steps", "50")) for i in range(2)]
        statuses = [task.wait() for task in tasks]
        if statuses != [0, 0]:
            return [f"exit statuses {statuses}", tasks[0].out, tasks[1].out]
        if weight(tasks[0].out) != weight(alone.stdout):
            return [f"two hosts: {weight(tasks[0].out)}; one host: {weight(alone.stdout)}"]
    return []


def killed_task(victim):
    with TwoHosts() as hosts:
        tasks = [hosts.start_task(i, trainer("--linger", f"{victim}:7")) for i in range(2)]
        tasks[victim].wait_for_text("lingering")
        tasks[victim].kill()
        other = tasks[1 - victim]
        status = other.wait(10)
        found = missing(other.out, f"worker:{victim} ({hosts.addresses[victim]}) was lost in step 7: connection closed")
        return found + ([f"exit status {status}, not 1"] if status != 1 else [])


def cut_cable():
    with TwoHosts() as hosts:
        tasks = [hosts.start_task(i, trainer("--linger", "1:3", "--failure-timeout", "3")) for i in range(2)]
        tasks[1].wait_for_text("lingering")
        hosts.cut()
        statuses = [task.wait(30) for task in tasks]
        found = [f"exit statuses {statuses}, not 1"] if statuses != [1, 1] else []
        for i in range(2):
            lost = f"worker:{1 - i} ({hosts.addresses[1 - i]}) was lost in step 3: no sign of life for 1.8 s"
            found += missing(tasks[i].out, lost)
        return found


def missing_task():
    with TwoHosts() as hosts:
        found = []
        for i in range(2):
            task = hosts.start_task(i, trainer("--arrival-timeout", "1"))
            status = task.wait(30)
            found += [f"exit status {status}, not 1"] if status != 1 else []
            found += missing(task.out, f"worker:{1 - i} ({hosts.addresses[1 - i]}) has not", "within 1 s", "is it started",
                             f"{hosts.addresses[0]}:29500")
        return found


def plain_start():
    """Says how to start each task, and starts nothing."""
    with TwoHosts() as hosts:
        task = hosts.start(0, trainer())
        status = task.wait()
        found = missing(task.out, *(f"on {a}:  {TRAINER} --hosts {','.join(hosts.addresses)} --task worker:{i}"
                                    for i, a in enumerate(hosts.addresses)))
        return found + ([f"exit status {status}, not 2"] if status != 2 else [])


def restarted():
    """Each host's own supervisor starts its task again, and they go on from the checkpoint."""
    with TwoHosts() as hosts, Folder() as folder:
        flags = trainer("--steps", "30", "--die", "1:9", "--max-restarts", "1", "--checkpoint-dir", folder)
        tasks = [hosts.start_task(i, flags) for i in range(2)]
        statuses = [task.wait() for task in tasks]
        found = [f"exit statuses {statuses}", tasks[0].out, tasks[1].out] if statuses != [0, 0] else []
        found += missing(tasks[1].out, "worker:1 was killed by signal 9 (Killed); restart 1 of 1 from where worker:0 goes on")
        found += missing(tasks[0].out, "worker:0 ended with status 1; restart 1 of 1 from ", "ckpt-9")
        alone = must([TRAINER, "--hosts", "localhost,localhost", "--steps", "30"])
        if weight(tasks[0].out) != weight(alone.stdout):
            found.append(f"restarted: {weight(tasks[0].out)}; undisturbed: {weight(alone.stdout)}")
        return found


def main():
    need_tools(TRAINER)
    checks = Checks()
    checks.check("two hosts compute what one computes", same_as_one_host)
    checks.check("kill -9 of worker:1 ends worker:0, which names it", killed_task, 1)
    checks.check("kill -9 of worker:0 ends worker:1, which names it", killed_task, 0)
    checks.check("a cut cable ends both", cut_cable)
    checks.check("a task that never comes is named", missing_task)
    checks.check("a plain start says how to start each task", plain_start)
    checks.check("a supervised run goes on after a loss", restarted)
    checks.exit()


if __name__ == "__main__":
    main()
