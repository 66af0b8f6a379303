#!/usr/bin/env python3
"""Makes the wheel of the Python package: distc with its runtime, and every library that they load but glibc's.

    tools/make_wheel.py [--build build] [--output dist]

`pip install dist/distc-*.whl` is then all that a machine needs to compile and to train.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tools" / "python"
# What each machine has.
GLIBC = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so\.")
NATIVE = "distc/_native"


def run(command, **more):
    return subprocess.run([str(each) for each in command], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def get_libraries(binary):
    """The shared libraries that a binary loads, by the names that it asks for."""
    found = {}
    for line in run(["ldd", binary]).splitlines():
        name, _, path = line.strip().partition(" => ")
        if not path or GLIBC.match(name):
            continue
        if path.startswith("not found"):
            raise SystemExit(f"error: '{binary}' needs {name}, which is not found")
        found[name] = pathlib.Path(path.rpartition(" (")[0]).resolve()
    return found


def get_glibc():
    """The oldest glibc that will do: this machine's."""
    return run(["ldd", "--version"]).splitlines()[0].split()[-1].replace(".", "_")


def read_project():
    try:
        import tomllib
    except ImportError:
        raise SystemExit("error: needs Python 3.11 or later")
    return tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]


def gather(build, folder):
    """Files of the wheel: their names in it, and where they lie."""
    files = {str(path.relative_to(PACKAGE)): path for path in sorted((PACKAGE / "distc").rglob("*")) if path.is_file() and path.suffix != ".pyc"}
    prefix = folder / "prefix"
    run(["cmake", "--install", build, "--prefix", prefix, "--strip"])
    distc = prefix / "bin" / "distc"
    files[f"{NATIVE}/bin/distc"] = distc
    for path in sorted((prefix / "lib" / "distc").rglob("*")):
        if path.is_file():
            files[f"{NATIVE}/lib/{path.relative_to(prefix / 'lib')}"] = path
    # Where distc looks for them: $ORIGIN/../lib.
    for name, path in get_libraries(distc).items():
        files[f"{NATIVE}/lib/{name}"] = path
    return files


def write_wheel(output, files, level):
    project = read_project()
    name, version, tag = project["name"], project["version"], f"py3-none-manylinux_{get_glibc()}_x86_64"
    info = f"{name}-{version}.dist-info"
    extras = "".join(f"Provides-Extra: {extra}\n" + "".join(f'Requires-Dist: {each} ; extra == "{extra}"\n' for each in needed)
                     for extra, needed in project.get("optional-dependencies", {}).items())
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {project['description']}\n"
                            f"License: Apache-2.0\nRequires-Python: {project['requires-python']}\n"
                            + "".join(f"Requires-Dist: {each}\n" for each in project["dependencies"]) + extras,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: distc\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/entry_points.txt": "[console_scripts]\n"
                                    + "".join(f"{command} = {of}\n" for command, of in project["scripts"].items()),
        f"{info}/LICENSE": (ROOT / "LICENSE").read_text(),
    }
    output.mkdir(parents=True, exist_ok=True)
    wheel = output / f"{name}-{version}-{tag}.whl"
    record = []
    partial = wheel.with_suffix(".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        def add(path, data, mode):
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for path, file in files.items():
            add(path, file.read_bytes(), 0o755 if path.startswith(f"{NATIVE}/bin/") else 0o644)
        for path, text in texts.items():
            add(path, text.encode(), 0o644)
        add_record = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), add_record)
    partial.rename(wheel)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where distc is built")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--level", type=int, default=9, help="of the compression")
    arguments = parser.parse_args()
    for tool in ("cmake", "ldd"):
        if not shutil.which(tool):
            raise SystemExit(f"error: needs {tool}")
    with tempfile.TemporaryDirectory(prefix="distc-wheel-") as folder:
        wheel = write_wheel(arguments.output, gather(arguments.build, pathlib.Path(folder)), arguments.level)
    print(f"{wheel} ({wheel.stat().st_size / 2**20:.0f} MiB)")


if __name__ == "__main__":
    sys.exit(main())
