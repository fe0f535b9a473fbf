"""Databases in the MaxMind DB format (version 2.0), as small as tests need them."""
import ipaddress

MARKER = b"\xab\xcd\xefMaxMind.com"
SEPARATOR = bytes(16)
EXTENDED = {"u64": 9, "array": 11}


def control(kind, size):
    """Sizes below 29 only: tests have no longer values."""
    assert size < 29
    return bytes([kind << 5 | size]) if kind < 8 else bytes([size, kind - 7])


def number(kind, value, width):
    data = value.to_bytes(width, "big").lstrip(b"\0")
    return control(kind, len(data)) + data


def encode(value):
    """Strings, maps, lists, and whole numbers (32 bits; a pair (kind, number) says another width)."""
    if isinstance(value, str):
        return control(2, len(value)) + value.encode()
    if isinstance(value, dict):
        return control(7, len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())
    if isinstance(value, list):
        return control(EXTENDED["array"], len(value)) + b"".join(map(encode, value))
    kind, value = value if isinstance(value, tuple) else ("u32", value)
    return number(*{"u16": (5, value, 2), "u32": (6, value, 4), "u64": (EXTENDED["u64"], value, 8)}[kind])


def tree_of(networks):
    """Nested pairs; leaves are None or an index into the data."""
    root = [None, None]
    for index, network in enumerate(networks):
        bits = format(int(network.network_address), "032b")[:network.prefixlen]
        node = root
        for bit in bits[:-1]:
            if not isinstance(node[int(bit)], list):
                node[int(bit)] = [None, None]
            node = node[int(bit)]
        node[int(bits[-1])] = index
    return root


def write(path, entries):
    """entries: IPv4 network as text to a value of encode; no network lies in another."""
    nodes, offsets, data = [], [], b""
    for value in entries.values():
        offsets.append(len(data))
        data += encode(value)

    def number_nodes(node):
        nodes.append(node)
        for child in node:
            if isinstance(child, list):
                number_nodes(child)

    number_nodes(tree_of([ipaddress.ip_network(n) for n in entries]))
    places = {id(node): i for i, node in enumerate(nodes)}

    def record(child):
        if child is None:
            return len(nodes)
        return places[id(child)] if isinstance(child, list) else len(nodes) + len(SEPARATOR) + offsets[child]

    tree = b"".join(record(child).to_bytes(3, "big") for node in nodes for child in node)
    about = {"node_count": len(nodes), "record_size": ("u16", 24), "ip_version": ("u16", 4), "database_type": "test",
             "languages": [], "binary_format_major_version": ("u16", 2), "binary_format_minor_version": ("u16", 0),
             "build_epoch": ("u64", 1), "description": {}}
    with open(path, "wb") as f:
        f.write(tree + SEPARATOR + data + MARKER + encode(about))
