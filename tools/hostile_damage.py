"""What hostile_inputs.py and hostile_kinds.py do to sound files; all draws are from R."""

import copy
import json
import random
import sqlite3
import struct

R = random.Random()
LIMITS = [0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -2**63, 10**400, 1e308, -1e308, 5e-324,
          0.5, float("nan"), float("inf"), "", "0", "\0", "\x1b[31m", "\u202e", "a" * 70000, "../../etc/passwd", None, True,
          [], {}, [[[[]]]], {"": None}, ["x"] * 300]


def places(tree, found, parent=None, key=None):
    if parent is not None:
        found.append((parent, key))
    if len(found) > 20000:
        return found
    for k in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []:
        places(tree[k], found, tree, k)
    return found


def graft(tree, other):
    """One to three changes of a JSON tree, some with parts of another."""
    tree = json.loads(json.dumps(tree))
    for _ in range(R.randrange(1, 4)):
        all_places = places(tree, [])
        if not all_places:
            break
        parent, key = R.choice(all_places)
        what = R.randrange(7)
        if what == 0:
            parent[key] = copy.deepcopy(R.choice(LIMITS))
        elif what == 1 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
            parent[key] = R.choice([-parent[key], parent[key] * 2**31, parent[key] + (0.5 if abs(parent[key]) < 2**53 else 3), str(parent[key]), parent[key] + 1])
        elif what == 2:
            source = R.choice(places(other, []) or [(other, next(iter(other), 0))])
            parent[key] = copy.deepcopy(source[0][source[1]])
        elif what == 3 and isinstance(parent, dict):
            parent[R.choice(["", key + "\0", key.upper(), "x" * 5000, "\x1b]0;x\x07"])] = parent.pop(key)
        elif what == 4:
            parent[key] = [parent[key]] * R.choice([1, 2, 1000])
        elif what == 5 and isinstance(parent, list):
            R.shuffle(parent)
        elif isinstance(parent, dict):
            del parent[key]
        else:
            parent.insert(0, copy.deepcopy(R.choice(LIMITS)))
    text = json.dumps(tree, ensure_ascii=R.random() < 0.5)
    if R.random() < 0.15:  # a key twice
        text = text.replace("{", '{"%s": %s, ' % (R.choice(["a", "name", "step"]), R.choice(["1", "[", '"x"'])), 1)
    if R.random() < 0.1:
        text = text[:R.randrange(len(text) + 1)]
    return text.encode("utf-8", "surrogatepass")


def shake(data, spots):
    """Bytes at some places, whole integers more often than single bits."""
    data = bytearray(data)
    for _ in range(R.randrange(1, 5)):
        at = R.randrange(min(spots, len(data)))
        what = R.randrange(4)
        if what == 0:
            data[at] ^= 1 << R.randrange(8)
        elif what == 1:
            data[at:at + 8] = struct.pack("<Q", R.choice([0, 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]))
        elif what == 2:
            data[at:at + 4] = struct.pack("<I", R.choice([0, 1, 2**31, 2**32 - 1, 9, 255]))
        else:
            size = R.randrange(1, 40)
            other = R.randrange(len(data))
            data[at:at + size] = data[other:other + size]
    if R.random() < 0.15:
        data = data[:R.randrange(len(data))]
    return bytes(data)


def change_rows(at):
    db = sqlite3.connect(at)
    tables = [row[0] for row in db.execute("select name from sqlite_master where type = 'table'")]
    for _ in range(R.randrange(1, 6)):
        table = R.choice(tables)
        columns = [row[1] for row in db.execute(f'pragma table_info("{table}")')]
        column = R.choice(columns or ["x"])
        value = R.choice([None, 2**63 - 1, -2**63, 1e308, "text", b"\0\xff" * 9, "\x1b[2J", "", -1, "1e999", '{"a": NaN}'])
        try:
            what = R.randrange(4)
            if what == 0:
                db.execute(f'alter table "{table}" rename column "{column}" to "{column}x"')
            elif what == 1:
                db.execute(f'delete from "{table}" where rowid % 2')
            else:
                db.execute(f'update "{table}" set "{column}" = ? where rowid % ? = 0', (value, R.choice([1, 2, 7])))
        except sqlite3.Error:
            pass
    db.commit()
    db.close()


def crc(data):
    """Masked CRC-32C, as TFRecord has it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 & -(value & 1))
    value ^= 0xFFFFFFFF
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def shaken_header(whole, other):
    """A safetensors file whose header is grafted; the data stay."""
    data = 8 + struct.unpack("<Q", whole[:8])[0]
    text = graft(json.loads(whole[8:data]), other)
    return struct.pack("<Q", len(text)) + text + whole[data:]
