# SPDX-License-Identifier: Apache-2.0
"""Keeps a program from starting a process or making a file: it dies by SIGSYS at the attempt."""

import ctypes
import errno
import os
import platform
import signal
import struct

DEATH = -signal.SIGSYS  # the return code of a program that tried

# linux/seccomp.h, linux/filter.h, linux/audit.h, asm/unistd.h.
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets into struct seccomp_data
_CLONE_THREAD = 0x10000
_MACHINES = {
    "x86_64": dict(audit=0xC000003E, clone=56, clone3=435, open=2, openat=257,
                   forbidden=dict(fork=57, vfork=58, creat=85, mkdir=83, mkdirat=258, mknod=133,
                                  mknodat=259, link=86, linkat=265, symlink=88, symlinkat=266,
                                  rename=82, renameat=264, renameat2=316)),
    "aarch64": dict(audit=0xC00000B7, clone=220, clone3=435, open=None, openat=56,
                    forbidden=dict(mkdirat=34, mknodat=33, linkat=37, symlinkat=36, renameat=38,
                                   renameat2=276)),
}


def _step(code, value, then=0, otherwise=0):
    return struct.pack("HBBI", code, then, otherwise, value)


def _when(number, steps):
    """Steps for one system call, passed over for all others."""
    return [_step(_JUMP_IF_EQUAL, number, 0, len(steps))] + steps


def _unless_bits(argument, bits):
    """Allows the call unless one of the bits is set in an argument, which then kills."""
    return [_step(_LOAD, _FIRST_ARGUMENT + 8 * argument), _step(_JUMP_IF_ANY_BIT, bits, 1, 0),
            _step(_RETURN, _ALLOW), _step(_RETURN, _KILL_PROCESS)]


def _program():
    machine = _MACHINES[platform.machine()]
    steps = [_step(_LOAD, _ARCHITECTURE), _step(_JUMP_IF_EQUAL, machine["audit"], 1, 0),
             _step(_RETURN, _KILL_PROCESS), _step(_LOAD, _NUMBER)]
    # A thread is no process. The flags of clone3 are out of a filter's reach: the C library falls
    # back to clone if there is none.
    steps += _when(machine["clone"],
                   [_step(_LOAD, _FIRST_ARGUMENT), _step(_JUMP_IF_ANY_BIT, _CLONE_THREAD, 0, 1),
                    _step(_RETURN, _ALLOW), _step(_RETURN, _KILL_PROCESS)])
    steps += _when(machine["clone3"], [_step(_RETURN, _ERROR | errno.ENOSYS)])
    if machine["open"] is not None:
        steps += _when(machine["open"], _unless_bits(1, os.O_CREAT))
    steps += _when(machine["openat"], _unless_bits(2, os.O_CREAT))
    for number in machine["forbidden"].values():
        steps += _when(number, [_step(_RETURN, _KILL_PROCESS)])
    return b"".join(steps) + _step(_RETURN, _ALLOW)


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


_CODE = _program()
_FILTER = _Filter(len(_CODE) // 8, _CODE)
_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def enter():
    """For preexec_fn: this process and what it executes start no process and make no file."""
    for call in [(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
                 (_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_FILTER))]:
        if _LIBC.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl failed")
