# SPDX-License-Identifier: Apache-2.0
"""A process that cannot start another one: what it must not do becomes what it fails at."""

import ctypes
import errno
import struct

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RETURN_ALLOW, RETURN_KILL, RETURN_ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06  # of classic BPF
NUMBER, FIRST_ARGUMENT = 0, 16  # where seccomp_data has them
CLONE, FORK, VFORK, CLONE3 = 56, 57, 58, 435  # of x86-64
CLONE_THREAD = 0x10000


def _program(forbidden):
    """Threads may start, by clone; clone3, whose flags a filter cannot read, is said not to exist."""
    steps = [
        (LOAD, 0, 0, NUMBER),
        (JUMP_EQUAL, 7, 0, FORK),
        (JUMP_EQUAL, 6, 0, VFORK),
        (JUMP_EQUAL, 3, 0, CLONE3),
        (JUMP_EQUAL, 0, 3, CLONE),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_SET, 1, 2, CLONE_THREAD),
        (RETURN, 0, 0, RETURN_ERRNO | errno.ENOSYS),
        (RETURN, 0, 0, RETURN_ALLOW),
        (RETURN, 0, 0, forbidden),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps), len(steps)


def forbid_processes(kill):
    """From now on this process, and the program that it becomes, dies when it starts another one;
    or, without `kill`, cannot and is told so (EPERM)."""
    code, length = _program(RETURN_KILL if kill else RETURN_ERRNO | errno.EPERM)
    buffer = ctypes.create_string_buffer(code)
    filter_program = struct.pack("HxxxxxxP", length, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")
