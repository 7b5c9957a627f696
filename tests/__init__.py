# SPDX-License-Identifier: Apache-2.0
"""What tests in Python share. A package with this file is found before those of its name in site-packages;
without it Python would take any of those first.
"""
