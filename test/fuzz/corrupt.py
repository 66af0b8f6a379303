"""Files that are damaged: bytes of any format, and lines and words of text."""
import re

WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]*|-?[0-9]+|\"[^\"\n]*\"|[^\sA-Za-z0-9]")
NUMBERS = [b"0", b"1", b"-1", b"2", b"3", b"7", b"64", b"65536", b"2147483648", b"4294967296", b"4611686018427387904",
           b"9223372036854775807", b"99999999999999999999", b"1e300", b"nan", b"-1.5"]


def is_number(word):
    return word.group()[-1:].isdigit() and not word.group()[:1].isalpha()


def kind_of(word):
    return (is_number(word), word.group()[:1].isalpha(), word.group()[:1])[:2 if word.group()[:1].isalnum() else 3]


def corrupt_bytes(data, random):
    """One to four changes of single bytes and ranges."""
    data = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 4])):
        at = random.randrange(len(data) + 1)
        length = random.choice([1, 1, 2, 4, 8, 64])
        kind = random.choice(["flip", "flip", "set", "cut", "insert", "end", "copy"])
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << random.randrange(8)
        elif kind == "set":
            data[at:at + length] = bytes([random.choice([0, 0xFF, 0x7F, 0x80, random.randrange(256)])]) * min(length, len(data) - at)
        elif kind == "cut":
            del data[at:at + length]
        elif kind == "insert":
            data[at:at] = bytes(random.randrange(256) for _ in range(length))
        elif kind == "end" and random.random() < 0.3:
            del data[at:]
        elif kind == "copy" and data:
            source = random.randrange(len(data))
            data[at:at] = data[source:source + length]
    return bytes(data)


def corrupt_text(data, random):
    """One to three changes of words and lines; now and then of bytes."""
    if random.random() < 0.15:
        return corrupt_bytes(data, random)
    for _ in range(random.choice([1, 1, 2, 3])):
        if random.random() < 0.2:
            lines = data.split(b"\n")
            at = random.randrange(len(lines))
            kind = random.choice(["cut", "twice", "swap"])
            if kind == "cut":
                del lines[at]
            elif kind == "twice":
                lines.insert(at, lines[random.randrange(len(lines))])
            else:
                other = random.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            data = b"\n".join(lines)
            continue
        words = list(WORD.finditer(data))
        if not words:
            return data
        word = random.choice(words)
        kind = random.choice(["number", "number", "like", "like", "like", "other", "cut", "twice"])
        if kind == "number":
            word = random.choice([w for w in words if is_number(w)] or [word])
            new = random.choice(NUMBERS)
        elif kind == "like":
            # A sound text of another meaning, more often than not.
            word = random.choice([w for w in words if w.group()[:1].isalnum() or w.group()[:1] == b'"'] or [word])
            new = random.choice([w for w in words if kind_of(w) == kind_of(word)]).group()
        elif kind == "other":
            new = random.choice(words).group()
        else:
            new = b"" if kind == "cut" else word.group() + b" " + word.group()
        data = data[:word.start()] + new + data[word.end():]
    return data
