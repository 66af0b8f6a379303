# How lit runs the tests of this folder. A test is a file with RUN lines; folders named Inputs hold what tests read.
#
# RUN lines find distc, distc-opt, distc-translate, FileCheck, not, split-file and the other tools of LLVM by their
# names. %{models} is test/models.
import os
import shutil

import lit.formats

config.name = "distc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".pbtxt"]
config.excludes = ["Inputs", "models", "unit", "end-to-end"]
config.test_source_root = os.path.dirname(__file__)

config.environment["PATH"] = os.pathsep.join([config.distc_tools, config.llvm_tools, os.environ["PATH"]])
config.environment["DISTC_BIN"] = config.distc_tools
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "CXX", "CUDA_HOME", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions.append(("%{models}", os.path.join(config.test_source_root, "models")))
# %{status} N COMMAND passes where COMMAND ends with exit status N.
config.substitutions.append(("%{status}", "bash -c 'want=$0; \"$@\"; got=$?; [ $got = $want ] || { echo \"exit status $got\"; exit 1; }'"))

# The runtime of devices in software, which is built where CUDA's headers are.
if os.path.exists(os.path.join(config.distc_tools, "..", "lib", "drt-cuda-emulated.link")):
    config.available_features.add("emulated")

# What there is of the CUDA toolkit, where distc looks for it.
ptxas = shutil.which("ptxas", path=os.pathsep.join([os.path.join(os.environ.get("CUDA_HOME", ""), "bin"), os.environ["PATH"], "/usr/local/cuda/bin"]))
if ptxas:
    config.available_features.add("ptxas")
toolkits = [os.environ.get("CUDA_HOME", ""), os.path.dirname(os.path.dirname(ptxas or "")), "/usr/local/cuda"]
if any(os.path.exists(os.path.join(toolkit, "nvvm/libdevice/libdevice.10.bc")) for toolkit in toolkits):
    config.available_features.add("libdevice")
