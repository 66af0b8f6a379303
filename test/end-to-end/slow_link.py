"""Two hosts whose link delays and loses packets: network namespaces, each with a tun device that this process reads and writes, so that
no kernel module for it is needed. Needs what hosts.py needs, and /dev/net/tun."""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

from hosts import TwoHosts, ip
from support import skip

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x1, 0x1000, 0x40000000


def open_tun(namespace):
    """A tun device in a namespace. A thread enters it, so that this process stays where it is."""
    opened = []

    def enter():
        try:
            with open(f"/run/netns/{namespace}") as net:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(net.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", b"tun0", IFF_TUN | IFF_NO_PI))
            opened.append(tun)
        except OSError as error:
            opened.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if isinstance(opened[0], OSError):
        raise opened[0]
    return opened[0]


class SlowHosts(TwoHosts):
    """with SlowHosts() as hosts: hosts.delay = 0.1 (seconds, one way); hosts.loss = 0.2; hosts.down = True."""
    addresses = ("10.231.78.1", "10.231.78.2")

    def __init__(self, seed=1):
        super().__init__()
        self.delay, self.loss, self.down = 0.0, 0.0, False
        self.forwarded = self.dropped = 0
        self.random = random.Random(seed)
        self.ends = []
        self.stopping = threading.Event()
        self.thread = None

    def __enter__(self):
        super().__enter__()
        try:
            for i, name in enumerate(self.names):
                ip("-n", name, "link", "del", "veth0", check=False)
                self.ends.append(open_tun(name))
                ip("-n", name, "address", "add", self.addresses[i], "peer", self.addresses[1 - i], "dev", "tun0")
                ip("-n", name, "link", "set", "tun0", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            skip(f"needs tun devices in network namespaces: {error}")
        self.thread = threading.Thread(target=self.forward, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        if self.thread:
            self.thread.join()
        for end in self.ends:
            os.close(end)
        self.ends = []
        super().__exit__()

    def forward(self):
        waiting, count = [], 0
        while not self.stopping.is_set():
            timeout = max(min(waiting[0][0] - time.monotonic(), 0.1), 0) if waiting else 0.1
            for end in select.select(self.ends, [], [], timeout)[0]:
                try:
                    packet = os.read(end, 65536)
                except OSError:
                    continue
                if self.down or self.random.random() < self.loss:
                    self.dropped += 1
                    continue
                self.forwarded += 1
                count += 1
                other = self.ends[1 - self.ends.index(end)]
                heapq.heappush(waiting, (time.monotonic() + self.delay, count, other, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(waiting)
                try:
                    os.write(end, packet)
                except OSError:
                    pass
