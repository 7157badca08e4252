// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "feedline/array.h"

namespace feedline::python {

// What a library takes an array from by DLPack: a capsule named "dltensor". Whoever has taken it may let go of it in
// any thread and at any time, also while Python exits or after it: `memory` is freed without Python, and so without the
// GIL.
nanobind::object to_dlpack(const ArrayView& view, std::shared_ptr<void> memory);

}  // namespace feedline::python
