"""A headless browser (Chromium), driven over a pipe with its DevTools protocol: what tests of pages share."""
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from support import skip

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), " ": (32, " "), "PageDown": (34, ""), "End": (35, ""), "Home": (36, ""),
        "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, "")}


def find_browser():
    """The browser's path: $DISTC_BROWSER, or the first of those known on the PATH; skips the test where there is none."""
    for name in filter(None, (os.environ.get("DISTC_BROWSER"), *NAMES)):
        if path := shutil.which(name):
            return path
    skip("needs a headless browser: apt-get install chromium, or set DISTC_BROWSER")


class Browser:
    """One page of a browser; `messages` is what its console said: errors, warnings and exceptions."""

    def __init__(self, path=None, timeout=60):
        self.timeout = timeout
        self.messages = []
        self.requests = []
        self.sent = 0
        self.buffer = b""
        self.profile = tempfile.TemporaryDirectory(prefix="distc-browser-", ignore_cleanup_errors=True)  # Its helpers may still write.
        read_here, write_there = os.pipe()
        read_there, self.to = os.pipe()
        self.source = read_here

        def connect():
            # The browser reads at 3 and writes at 4. Neither number may be overwritten before it is moved.
            reading, writing = os.dup2(read_there, 200), os.dup2(write_there, 201)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            [path or find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=connect)
        os.close(read_there)
        os.close(write_there)
        os.set_blocking(self.source, False)
        self.session = None
        self.frames = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self._listen()

    def _listen(self):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        # Frames with an origin of their own may be in a process of their own.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=False, flatten=True)

    @contextlib.contextmanager
    def frame(self):
        """What is asked here is asked of the page's frame."""
        page = self.session
        if not self.frames:
            raise AssertionError("the page has no frame")
        try:
            self.session = self.frames[-1]
            self._listen()
            yield self
        finally:
            self.session = page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.source)
        self.profile.cleanup()

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            if time.monotonic() > deadline:
                raise AssertionError("the browser does not answer")
            if self.process.poll() is not None:
                raise AssertionError(f"the browser ended with status {self.process.returncode}")
            try:
                self.buffer += os.read(self.source, 1 << 20)
            except BlockingIOError:
                time.sleep(0.005)
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        parameters = event.get("params", {})
        if event["method"] == "Target.attachedToTarget" and parameters["targetInfo"]["type"] == "iframe":
            self.frames.append(parameters["sessionId"])
        if event["method"] == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.messages.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.messages.append(parameters["type"] + ": " + " ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.messages.append(parameters["entry"]["level"] + ": " + parameters["entry"]["text"])
        elif event["method"] == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method, **parameters):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.sent:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self._note(answer)

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits where it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def open(self, path, width=1440, height=900, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path if "://" in str(path) else f"file://{path}")
        deadline = time.monotonic() + self.timeout
        while self.evaluate("document.readyState") != "complete" and time.monotonic() < deadline:
            time.sleep(0.02)
        self.settle()

    def settle(self):
        """Until what was changed is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")

    def key(self, key, times=1, shift=False):
        code, text = KEYS.get(key, (ord(key.upper()) if len(key) == 1 else 0, key if len(key) == 1 else ""))
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        for _ in range(times):
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **({"text": text} if text else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text):
        for letter in text:
            self.call("Input.insertText", text=letter)
        self.settle()

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
