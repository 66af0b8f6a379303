"""The other end of a task's connection to the rendezvous, which says what a file holds, whatever it is told.

  peer.py listen|connect FILE COMMAND…    runs a task with `--rendezvous ADDRESS` behind the command, and ends as it does

`listen` is for a task that connects, `connect` for one that listens. `relayed` records what both ends of a sound run say.
"""
import contextlib
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def connect(port, timeout=20):
    """To a listener that may still be starting."""
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), 5)
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody listens at {port}")
        time.sleep(0.01)


def relayed(listener, port):
    """What the first caller and the server at `port` say to each other until one ends: two lists of bytes."""
    said = [b"", b""]
    caller, _ = listener.accept()
    ends = [caller, connect(port)]
    try:
        while True:
            for ready in select.select(ends, [], [])[0]:
                who = ends.index(ready)
                data = ready.recv(1 << 16)
                if not data:
                    return said
                said[who] += data
                ends[1 - who].sendall(data)
    except OSError:
        return said
    finally:
        for end in ends:
            end.close()


def messages(data):
    """Of a conversation: a kind and fields each."""
    found, at = [], 0
    while at + 5 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        body, at = data[at + 4:at + 4 + length], at + 4 + length
        fields, field = [], 1
        while field + 4 <= len(body):
            (size,) = struct.unpack_from("<I", body, field)
            fields.append(body[field + 4:field + 4 + size])
            field += 4 + size
        found.append([body[0], fields])
    return found


def encode(said):
    bodies = [bytes([kind]) + b"".join(struct.pack("<I", len(field)) + field for field in fields) for kind, fields in said]
    return b"".join(struct.pack("<I", len(body)) + body for body in bodies)


NUMBERS = [b"", b"0", b"1", b"-1", b"2", b"99", b"4294967297", b"9223372036854775807", b"99999999999999999999", b"1e300", b"nan", b"x"]


def changed(data, draw, corrupt_bytes):
    """The conversation with messages and fields changed, and now and then bytes."""
    if draw.random() < 0.25:
        return corrupt_bytes(data, draw)
    said = messages(data)
    for _ in range(draw.choice([1, 1, 2, 3])):
        at = draw.randrange(len(said))
        how = draw.choice(["field", "field", "field", "kind", "cut", "twice", "swap", "more", "fewer"])
        kind, fields = said[at]
        if how == "field" and fields:
            which = draw.randrange(len(fields))
            fields[which] = draw.choice([corrupt_bytes(fields[which], draw), draw.choice(NUMBERS), bytes(draw.choice([1, 31, 33, 70000]))])
        elif how == "kind":
            said[at] = [draw.randrange(24), fields]
        elif how == "cut" and len(said) > 1:
            del said[at]
        elif how == "twice":
            said.insert(at, [kind, list(fields)])
        elif how == "swap":
            other = draw.randrange(len(said))
            said[at], said[other] = said[other], said[at]
        elif how == "more":
            fields.insert(draw.randrange(len(fields) + 1), draw.choice(NUMBERS))
        elif how == "fewer" and fields:
            fields.pop(draw.randrange(len(fields)))
    return encode(said)


def speak(end, data):
    """All of it, and then nothing, while what comes is read, until the other end has done."""
    with end, contextlib.suppress(OSError):
        end.settimeout(10)
        end.sendall(data)
        while end.recv(1 << 16):
            pass


def main():
    how, path, *command = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read()
    with contextlib.ExitStack() as stack:
        if how == "listen":
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = listener.getsockname()[1]
        else:
            port = free_port()
        task = subprocess.Popen([*command, "--rendezvous", f"127.0.0.1:{port}"])

        def converse():
            with contextlib.suppress(OSError):
                # One that was refused may try again.
                speak(listener.accept()[0] if how == "listen" else connect(port), data)

        threading.Thread(target=converse, daemon=True).start()
        status = task.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        signal.raise_signal(-status)
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
