"""What is installed works where it lies: in a prefix that was moved, and unpacked from the Debian package."""
import os
import shutil

from support import BIN, Checks, Folder, Model, expect, is_sanitized, must, need_tools, run, skip

BUILD = BIN.parent
LINREG, MLP = Model("linreg-sgd"), Model("mlp-momentum")


def train_with(distc, folder):
    """Compiles with what is installed, in an environment that knows nothing of the build, and trains."""
    found = []
    for model in (LINREG, MLP):
        train = folder / model.name
        must([distc, "compile", model.graph, "--replicas", 2, "--batch", model.case["batch"], "-o", train],
             env={"PATH": os.environ["PATH"]})
        found += expect(run([train, "--data", model.feeds, "--steps", 3]), 0, "done after 3 steps")
    return found


def moved_prefix():
    with Folder() as folder:
        must(["cmake", "--install", BUILD, "--prefix", folder / "first"])
        (folder / "first").rename(folder / "second")
        prefix = folder / "second"
        found = train_with(prefix / "bin" / "distc", folder)
        page = (prefix / "share/man/man1/distc.1").read_text()
        if "\\-\\-replicas" not in page or not page.startswith(".TH DISTC 1"):
            found.append("the manual page does not say what distc takes")
        script = prefix / "share/bash-completion/completions/distc"
        complete = f"source {script}; COMP_WORDS=(distc compile --rep); COMP_CWORD=2; _distc; echo ${{COMPREPLY[@]}}"
        found += expect(run(["bash", "-c", complete]), 0, "--replicas")
        complete = f"source {script}; COMP_WORDS=(distc strategy ''); COMP_CWORD=2; _distc; echo ${{COMPREPLY[@]}}"
        found += expect(run(["bash", "-c", complete]), 0, "build show diff")
        complete = f"source {script}; COMP_WORDS=(distc compile --emit = d); COMP_CWORD=4; _distc; echo ${{COMPREPLY[@]}}"
        found += expect(run(["bash", "-c", complete]), 0, "dfg dist drt")
        complete = f"source {script}; cd {prefix}; COMP_WORDS=(distc compile ''); COMP_CWORD=2; _distc; echo ${{COMPREPLY[@]}}"
        found += expect(run(["bash", "-c", complete]), 0, "share")
        complete = f"source {script}; COMP_WORDS=(distc completion ''); COMP_CWORD=2; _distc; echo ${{COMPREPLY[@]}}"
        found += expect(run(["bash", "-c", complete]), 0, "bash zsh fish")
        for file in ("share/zsh/vendor-completions/_distc", "share/fish/vendor_completions.d/distc.fish"):
            if "replicas" not in (prefix / file).read_text():
                found.append(f"{file} does not know --replicas")
        reference = prefix / "share/doc/distc/docs/reference"
        for page, said in (("dist", "`dist.all_reduce`"), ("drt-servers", "`drt.pull`"), ("passes-lower", "`-drt-verify-order`")):
            if said not in (reference / f"{page}.md").read_text():
                found.append(f"docs/reference/{page}.md does not describe {said}")
        return found


def package():
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(tool):
            print(f"        (left out: {tool} is not installed)")
            return []
    with Folder() as folder:
        must(["cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder / "packages"], cwd=folder, timeout=900)
        deb = next((folder / "packages").glob("*.deb"))
        depends = run(["dpkg-deb", "--field", deb, "Depends"])
        found = expect(depends, 0, "libc6")
        found += [f"the package needs {name}" for name in ("lld", "g++") if name in depends.out]
        must(["dpkg-deb", "--extract", deb, folder / "root"])
        return found + train_with(folder / "root/usr/bin/distc", folder)


if __name__ == "__main__":
    need_tools()
    if not (BUILD / "pages" / "distc.1").exists():
        skip("the build has no pages; build all of it")
    if is_sanitized():
        skip("a build with sanitizers is not installed")
    checks = Checks()
    checks.check("a prefix that was moved", moved_prefix)
    checks.check("the Debian package", package)
    checks.exit()
