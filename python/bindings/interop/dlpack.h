// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "feedline/array.h"
#include "feedline/device.h"

namespace feedline::python {

// A DLPack capsule named "dltensor" for an array. The caller must make the GPU's stream wait before the array is read;
// the capsule does not. The consumer may release it on any thread and at any time, even while or after Python exits:
// `memory` is freed without Python, and so without the GIL.
nanobind::object to_dlpack(const ArrayView& view, std::shared_ptr<void> memory, const DeviceLocation& location = {});
// DLPack's number for the kind of device.
int dlpack_kind(DeviceKind kind);

}  // namespace feedline::python
