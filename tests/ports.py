# SPDX-License-Identifier: Apache-2.0
"""TCP ports for tests."""

import socket


def free_port():
    """One of loopback that nobody uses at this moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
