"""The program that QProcess starts in the place of a command: it has it forked, and lives as long.

`python -I -S fork_client.py SOCKET WORD...` hands its files, environment and folder to the server that listens at
SOCKET, passes signals on, and ends as the fork ends. If it is killed, the server kills the fork.
"""

import array
import json
import os
import signal
import socket
import sys


def main() -> None:
    """Have the command forked, and end as it does."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connected.connect("\0" + sys.argv[1])
    order = {"args": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ), "session": False}
    files = array.array("i", (0, 1, 2))
    connected.sendmsg([json.dumps(order).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    signal.signal(signal.SIGTERM, lambda number, _: connected.send(str(number).encode()))
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in files:  # the fork's alone: the other side sees the end of a pipe that it closes
        os.dup2(nothing, file)
    status = os.waitstatus_to_exitcode(int(connected.recv(64) or 256))
    if status >= 0:
        os._exit(status)
    signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
    os.kill(os.getpid(), -status)


main()
