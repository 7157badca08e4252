// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "feedline/array.h"
#include "feedline/device.h"

namespace feedline::python {

// What a library takes an array from by DLPack: a capsule named "dltensor". It is for a GPU's stream to wait before the
// array is read, not for the capsule. Whoever has taken it may let go of it in
// any thread and at any time, also while Python exits or after it: `memory` is freed without Python, and so without the
// GIL.
nanobind::object to_dlpack(const ArrayView& view, std::shared_ptr<void> memory, const DevicePlace& place = {});
// DLPack's number for the kind of device.
int dlpack_kind(DeviceKind kind);

}  // namespace feedline::python
