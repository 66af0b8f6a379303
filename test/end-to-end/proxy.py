"""A connection that is slow in one way or both: forwards what comes at a port of its own, later."""
import queue
import socket
import threading
import time


class Proxy:
    """with Proxy(29500, back=0.005) as proxy: … connect to proxy.port. `there`: seconds to the port, `back`: from it."""

    def __init__(self, port, there=0, back=0):
        self.target, self.there, self.back = port, there, back
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listening.close()

    def accept(self):
        while True:
            try:
                caller, _ = self.listening.accept()
            except OSError:
                return
            try:
                called = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                caller.close()  # who calls tries again
                continue
            for end in (caller, called):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.forward(caller, called, self.there)
            self.forward(called, caller, self.back)

    def forward(self, source, sink, delay):
        """Every byte is as late as the others: a reader and a writer of its own."""
        pieces = queue.Queue()

        def read():
            while True:
                try:
                    piece = source.recv(1 << 16)
                except OSError:
                    piece = b""
                pieces.put((time.monotonic() + delay, piece))
                if not piece:
                    return

        def write():
            while True:
                due, piece = pieces.get()
                time.sleep(max(0, due - time.monotonic()))
                try:
                    if not piece:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    sink.sendall(piece)
                except OSError:
                    return

        for work in (read, write):
            threading.Thread(target=work, daemon=True).start()
