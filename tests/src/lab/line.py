"""A long line between two interfaces of one namespace: every frame arrives later, and some never.

    line.py carry NEAR FAR DELAY_MS LOSS_PERCENT   until it is ended
    line.py plain INTERFACE                        no offloads: frames leave it whole and with their checksums

It stands in for tc-netem, which many kernels are built without.
"""

import array
import collections
import fcntl
import random
import select
import socket
import struct
import sys
import time

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
FRAME_BYTES_MAX = 65_536
# A longer queue on the line drops frames, as real ones do.
QUEUED_MAX = 10_000
SIOCETHTOOL = 0x8946
# Transmit checksums, TCP and generic segmentation, generic receive offload (linux/ethtool.h).
OFFLOADS = (0x17, 0x1F, 0x24, 0x2C)


def tap(interface):
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.bind((interface, 0))
    end.setblocking(False)
    return end


def waiting(end):
    """The frames that came in at one end; not those that we sent out there."""
    while True:
        try:
            frame, (_, _, kind, *_) = end.recvfrom(FRAME_BYTES_MAX)
        except BlockingIOError:
            return
        if kind != PACKET_OUTGOING:
            yield frame


def carry(near, far, delay, loss):
    ends = [tap(near), tap(far)]
    others = {ends[0]: ends[1], ends[1]: ends[0]}
    # The delay is the same for all, so frames leave in the order in which they came.
    on_the_way = collections.deque()
    chance = random.Random(1)
    print("carrying", flush=True)
    while True:
        wait = max(0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for end in select.select(ends, [], [], wait)[0]:
            for frame in waiting(end):
                if chance.random() >= loss and len(on_the_way) < QUEUED_MAX:
                    on_the_way.append((time.monotonic() + delay, others[end], frame))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, end, frame = on_the_way.popleft()
            try:
                end.send(frame)
            except OSError:
                pass  # A full queue or a frame too long: lost, as on a real line.


def plain(interface):
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for command in OFFLOADS:
        # The kernel takes a pointer to the command and its value.
        held = array.array("I", (command, 0))
        address, _ = held.buffer_info()
        fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", interface.encode(), address))


if sys.argv[1] == "carry":
    carry(sys.argv[2], sys.argv[3], float(sys.argv[4]) / 1000, float(sys.argv[5]) / 100)
else:
    plain(sys.argv[2])
