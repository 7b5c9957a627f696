// SPDX-License-Identifier: Apache-2.0
// hwloc asks udev for the names of disks, and Debian has no static libudev. These stand in for it,
// so that the program needs no further shared library: without a udev context hwloc reads /run/udev
// itself, and it calls none of the other functions.

extern "C" {

void* udev_new() { return nullptr; }
void* udev_unref(void*) { return nullptr; }
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) { return nullptr; }
const char* udev_device_get_property_value(void*, const char*) { return nullptr; }
void* udev_device_unref(void*) { return nullptr; }
}
