"""Tasks that speak TLS: the same numbers, whatever goes over the network; who lacks the right certificate is told so at once, and changes nothing."""
import shutil
import socket
import threading
import time

from hosts import Process
from stops import TRAIN, command
from strangers import exported, strangers_at
from support import Checks, DISTC, Folder, Model, expect, must, need_tools, run, skip

NETWORK = "--collectives=network"
STEPS = 12


class Authority:
    """Signs certificates of tasks."""

    def __init__(self, folder, name="authority"):
        self.folder, self.name = folder, name
        self.certificate = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        must(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-days", 30,
              "-keyout", self.key, "-out", self.certificate])

    def flags(self, task, days=30, name=None):
        """What a task is given: a certificate of its own, of that other name."""
        stem = self.folder / f"{self.name}-{task}"
        certificate, key, request = (stem.with_suffix(s) for s in (".pem", ".key", ".csr"))
        must(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={task}", "-keyout", key, "-out", request,
              *(["-addext", f"subjectAltName={name}"] if name else [])])
        must(["openssl", "x509", "-req", "-in", request, "-copy_extensions", "copy", "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", days, "-out", certificate])
        return ["--tls-cert", certificate, "--tls-key", key, "--tls-ca", self.certificate]


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def same_numbers(replicas, *flags):
    """Encrypted or not: the same bits."""
    with Folder() as folder:
        tls = Authority(folder).flags("task")
        plan = f"{replicas} {replicas} {2 * replicas}"
        for name, more in (("encrypted", tls), ("plain", [])):
            must(command(plan, folder, "--steps", STEPS, "--export-npz", folder / f"{name}.npz", *flags, *more))
        return [] if exported(folder / "encrypted.npz") == exported(folder / "plain.npz") else ["the variables are others than without TLS"]


def model(name, strategy, replicas, *flags):
    """A compiled program, against TensorFlow's numbers."""
    case = Model(name)
    with Folder() as folder:
        tls = Authority(folder).flags("task")
        program = case.compile(folder / "train", replicas, strategy, "--one-process-per-replica", "--tls")
        must([*case.run_command(program, folder), *tls, *flags])
        return case.differences(folder, replicas)


def two_tasks(folder, flags, steps=STEPS):
    """Exit statuses and what was printed of two tasks that are started one by one."""
    where = free_address()
    tasks = [Process(command("2 2 4", folder, "--steps", steps, NETWORK, "--task", f"worker:{i}", "--rendezvous", where, "--arrival-timeout", 20,
                             *flags[i])) for i in range(2)]
    return tasks


def own_certificates():
    with Folder() as folder:
        authority = Authority(folder)
        tasks = two_tasks(folder, [authority.flags("a"), authority.flags("b")])
        statuses = [task.wait() for task in tasks]
        return [] if statuses == [0, 0] else [f"exit statuses {statuses}", tasks[0].out, tasks[1].out]


def refused(flags_of, at, *texts):
    """One of two tasks ends at once, and says why, while the other waits for one that belongs."""
    with Folder() as folder:
        tasks = two_tasks(folder, flags_of(folder))
        try:
            status = tasks[at].wait(10)
            found = [f"exit status {status} of worker:{at}:\n{tasks[at].out}"] if status not in (1, 2) else []
            return found + [f"'{text}' is not in:\n{tasks[at].out}" for text in texts if text not in tasks[at].out]
        finally:
            for task in tasks:
                task.kill()


def names():
    """Certificates of one authority, which has signed others: with a name the run's alone are believed, by both ends."""
    found = []
    for name, belongs in (("DNS:training.example", "training.example"), ("IP:10.1.2.3", "10.1.2.3")):
        with Folder() as folder:
            authority = Authority(folder)
            own = [[*authority.flags(task, name=name), "--tls-name", belongs] for task in "ab"]
            tasks = two_tasks(folder, own)
            found += [f"exit status {task.popen.returncode} with its name {belongs}:\n{task.out}" for task in tasks if task.wait() != 0]
            # What would be refused is said before anything is started.
            found += expect(run(command("2 2 4", folder, "--steps", STEPS, *authority.flags("c", name="DNS:web.example"), "--tls-name", belongs)), 2,
                            "--tls-name " + belongs, "mismatch")
            found += refused(lambda other: [own[0], authority.flags("d", name="DNS:web.example")], 1, "the encrypted connection to the rendezvous", "--tls-cert")
            found += refused(lambda other: [authority.flags("e", name="DNS:web.example"), own[1]], 1, "certificate of the other end is refused")
    return found


def other_authority(folder):
    return [Authority(folder).flags("a"), Authority(folder, "other").flags("b")]


def stolen_of(folder, other):
    """A certificate of another authority, of a task that believes the run's as well."""
    both = folder / "both.pem"
    both.write_text((folder / "authority.pem").read_text() + other.certificate.read_text())
    return [*other.flags("b")[:-1], both]


def stolen_certificate(folder):
    return [Authority(folder).flags("a"), stolen_of(folder, Authority(folder, "other"))]


def stranger_is_noted():
    """A task of another authority comes first; the run waits for its own, and goes well."""
    with Folder() as folder:
        authority, other = Authority(folder), Authority(folder, "other")
        where = free_address()
        start = lambda i, flags: Process(command("2 2 4", folder, "--steps", STEPS, NETWORK, "--task", f"worker:{i}", "--rendezvous", where, *flags))
        first = start(0, authority.flags("a"))
        stranger = start(1, stolen_of(folder, other))
        second = None
        try:
            status = stranger.wait(20)
            second = start(1, authority.flags("b"))
            statuses = [first.wait(), second.wait()]
            found = [f"the stranger's exit status is {status}:\n{stranger.out}"] if status == 0 else []
            if statuses != [0, 0]:
                found.append(f"exit statuses {statuses}:\n{first.out}{second.out}")
            if first.out.count("the certificate of the other end is refused") != 1:
                found.append(f"the stranger is not noted once:\n{first.out}")
            return found
        finally:
            for process in (first, stranger, second):
                if process:
                    process.kill()


def wrong_files():
    with Folder() as folder:
        authority = Authority(folder)
        cert, key, ca = authority.flags("a")[1::2]
        other_key = authority.flags("b")[3]
        foreign = Authority(folder, "other").flags("c")
        old = authority.flags("old", days=0)
        text = folder / "text.pem"
        text.write_text("no certificate\n")
        locked = folder / "locked.pem"
        must(["openssl", "pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", locked])
        time.sleep(1.1)  # the old one is
        found = []
        for flags, status, said in (
                (["--tls-cert", cert], 2, "--tls-cert, --tls-key and --tls-ca go together"),
                (["--tls-cert", folder / "absent.pem", "--tls-key", key, "--tls-ca", ca], 2, "No such file"),
                (["--tls-cert", text, "--tls-key", key, "--tls-ca", ca], 2, "is no such PEM file"),
                (["--tls-cert", cert, "--tls-key", text, "--tls-ca", ca], 2, "is no such PEM file"),
                (["--tls-cert", cert, "--tls-key", locked, "--tls-ca", ca], 2, "is encrypted, and nobody is asked for its password"),
                (["--tls-cert", cert, "--tls-key", key, "--tls-ca", text], 2, "--tls-ca"),
                (["--tls-cert", cert, "--tls-key", other_key, "--tls-ca", ca], 2, "is not the key of --tls-cert"),
                ([*foreign[:-1], ca], 2, "would be refused by tasks with --tls-ca"),
                (old, 2, "certificate has expired")):
            done = run(command("2 2 4", folder, "--steps", 1, *flags), timeout=20)
            found += expect(done, status, said)
            if done.out.count("error:") != 1:
                found.append(f"not one error:\n{done.out}")
        found += expect(run(command("2 1 4", folder, "--steps", 1, *authority.flags("d"))), 2, "the plan has one task")
        return found


def without_tls():
    """A program that was not compiled for it, and what cannot be."""
    case = Model("mlp-adam")
    with Folder() as folder:
        program = case.compile(folder / "train", 2, "AllReduce", "--one-process-per-replica")
        found = expect(run([program, "--data", case.feeds, "--steps", 1, *Authority(folder).flags("a")]), 2, "compile it again with --tls")
        found += expect(run(case.compile_command(folder / "one", 2, "AllReduce", "--tls")), 2, "--tls is for several tasks")
        return found + expect(run(case.compile_command(folder / "out", 2, "AllReduce", "--tls", "--emit=graphdef")), 2, "--tls is for executables of processors")


def what_goes_over_the_wire():
    """Between task 1 and the rendezvous stands somebody who writes down what passes."""
    found = []
    for encrypted in (False, True):
        with Folder() as folder:
            authority = Authority(folder)
            flags = [authority.flags(i) if encrypted else [] for i in range(2)]
            where = free_address()
            host, port = where.split(":")
            heard = []
            listening = socket.create_server(("127.0.0.1", 0))
            until = threading.Event()

            def pass_on(one, other):
                try:
                    while data := one.recv(65536):
                        heard.append(data)
                        other.sendall(data)
                except OSError:
                    pass

            def forward():
                while not until.is_set():
                    try:
                        one = listening.accept()[0]
                        other = socket.create_connection((host, int(port)))
                    except OSError:
                        continue
                    for pair in ((one, other), (other, one)):
                        threading.Thread(target=pass_on, args=pair, daemon=True).start()

            start = lambda i, at: Process(command("2 2 4", folder, "--steps", STEPS, "--task", f"worker:{i}", "--rendezvous", at, *flags[i]))
            tasks = [start(0, where)]
            time.sleep(0.5)
            threading.Thread(target=forward, daemon=True).start()
            tasks.append(start(1, f"127.0.0.1:{listening.getsockname()[1]}"))
            statuses = [task.wait() for task in tasks]
            until.set()
            listening.close()
            if statuses != [0, 0]:
                return [f"exit statuses {statuses}:\n{tasks[0].out}{tasks[1].out}"]
            if (b"evaluated every" in b"".join(heard)) == encrypted:  # of the fingerprint
                found.append(f"{'with' if encrypted else 'without'} TLS, the program's fingerprint is {'' if encrypted else 'not '}readable")
    return found


def harmless():
    """Garbage, slow bytes and floods at the encrypted rendezvous."""
    with Folder() as folder:
        tls = Authority(folder).flags("task")
        must(command("2 2 4", folder, "--steps", 300, "--export-npz", folder / "alone.npz", NETWORK))
        where = free_address()
        host, port = where.split(":")
        process = Process(command("2 2 4", folder, "--steps", 300, "--export-npz", folder / "among.npz", "--failure-timeout", 5, "--rendezvous", where,
                                  NETWORK, *tls))
        try:
            with strangers_at((host, int(port))):
                status = process.wait(120)
        finally:
            process.kill()
        if status != 0:
            return [f"exit status {status}:\n{process.out}"]
        return [] if exported(folder / "alone.npz") == exported(folder / "among.npz") else ["the variables are others than without strangers"]


def main():
    if not shutil.which("openssl"):
        skip("needs openssl, which makes certificates: apt-get install openssl")
    need_tools(TRAIN, DISTC)
    checks = Checks()
    for replicas in (2, 3, 4):
        checks.check(f"{replicas} tasks over the network", same_numbers, replicas, NETWORK)
    checks.check("tasks that share memory", same_numbers, 2)
    checks.check("a certificate for each task", own_certificates)
    for name, strategy in (("mlp-adam", "AllReduce"), ("mlp-adam", "ShardedUpdate"), ("mlp-adam", "PSLoadBalancing"), ("mlp-adam", "PS:replicas_to_aggregate=2"), ("embedding-adam", "AllReduce")):
        checks.check(f"{name}, {strategy}", model, name, strategy, 2, NETWORK)
    checks.check("wrong files", wrong_files)
    checks.check("another authority", refused, other_authority, 1, "the certificate of the other end is refused")
    checks.check("a certificate of another authority", refused, stolen_certificate, 1, "the encrypted connection to the rendezvous", "--tls-cert")
    checks.check("names", names)
    checks.check("a task without TLS", refused, lambda folder: [Authority(folder).flags("a"), []], 1, "give every task --tls-cert")
    checks.check("only one task with TLS", refused, lambda folder: [[], Authority(folder).flags("a")], 1, "does not speak TLS")
    checks.check("a stranger comes first", stranger_is_noted)
    checks.check("programs without TLS", without_tls)
    checks.check("what goes over the wire", what_goes_over_the_wire)
    checks.check("strangers", harmless)
    checks.exit()


if __name__ == "__main__":
    main()
