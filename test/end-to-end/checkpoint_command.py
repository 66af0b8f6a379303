"""distc checkpoint: what it prints, and its exit status."""
import numpy as np

import support

support.need_tools()


def expect(status, text, *command):
    done = support.run([support.DISTC, "checkpoint", *command])
    assert done.returncode == status and text in done.out, f"{command}: exit status {done.returncode}\n{done.out}"


with support.Folder() as folder:
    a, b, c = (folder / name for name in ("a.npz", "b.npz", "c.npz"))
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)
    other = kernel.copy()
    other[1, 2] = 5.5
    np.savez(a, **{"dense/kernel": kernel, "step": np.int64(3)})
    np.savez(b, **{"dense/kernel": other, "step": np.int64(3)})
    np.savez(c, **{"dense/kernel": kernel.T, "extra": kernel})
    expect(0, "2 tensors written", "import", a, folder / "ckpt")
    expect(0, "dense/kernel  float32     [2,3]                       24       -  ok", "list", folder / "ckpt")
    (folder / "run").mkdir()
    expect(1, "run' holds no complete checkpoint", "list", folder / "run")
    expect(0, "2 tensors written", "import", a, folder / "run" / "ckpt-7")
    (folder / "run" / "checkpoint").write_text('model_checkpoint_path: "ckpt-7"\nall_model_checkpoint_paths: "ckpt-7"\n')
    expect(0, "dense/kernel  float32", "list", folder / "run")
    expect(0, "2 tensors are equal", "diff", folder / "run", a)
    expect(0, "2 tensors are equal", "diff", folder / "ckpt", a)
    expect(1, "dense/kernel: max abs 0.5, max rel 0.0909091, 1 of 6 elements", "diff", folder / "ckpt", b)
    expect(1, "dense/kernel: float32[2,3] and float32[3,2]", "diff", a, c)
    expect(1, f"extra: only in {c}", "diff", a, c)
    expect(1, "3 of 3 tensors differ", "diff", a, c)

    data = folder / "ckpt.data-00000-of-00001"
    bytes = bytearray(data.read_bytes())
    bytes[0] ^= 1
    data.write_bytes(bytes)
    expect(1, "wrong checksum of variable 'dense/kernel'", "list", folder / "ckpt")
    expect(1, "wrong checksum of variable 'dense/kernel'", "export", folder / "ckpt", folder / "out.npz")
    expect(1, "none.index: No such file", "export", folder / "none", folder / "out.safetensors")
    a.write_bytes(a.read_bytes()[:-30])
    expect(1, "a.npz is not a whole .npz file", "import", a, folder / "new")
    (folder / "x.safetensors").write_bytes(b"\xff" * 20)
    expect(1, "x.safetensors is not a whole safetensors file", "import", folder / "x.safetensors", folder / "new")
    expect(2, "must end in .npz or .safetensors", "export", folder / "ckpt", folder / "out.txt")
    expect(2, "there is no command 'shuffle'", "shuffle")
    expect(2, "PREFIX is required", "list")
    expect(0, "export", "--help")
    assert not list(folder.glob("new*")) and not list(folder.glob("out*")), list(folder.iterdir())
print("ok")
