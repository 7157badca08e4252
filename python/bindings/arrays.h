// SPDX-License-Identifier: Apache-2.0
#pragma once

// Engine arrays as Python's, and Python's bytes as the engine's, without a copy. Requires: the GIL is held.

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>

#include "feedline/array.h"
#include "feedline/loader.h"

namespace feedline::python {

enum class Framework { kNumpy, kTorch };

// A writable NumPy array or torch tensor on `view`, which keeps `memory` alive as long as it or a view of it lives.
// Imports the framework at the first call.
nanobind::object to_array(const ArrayView& view, std::shared_ptr<void> memory, Framework framework);

// "(3, 224, 224)" as a tuple of ints
nanobind::tuple to_tuple(const Shape& shape);

// A C-contiguous buffer (bytes, bytearray, memoryview, mmap), held for the life of this object, which may give the
// GIL away meanwhile. Raises TypeError or BufferError.
class HeldBytes {
 public:
  explicit HeldBytes(nanobind::handle object);
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  std::span<const std::byte> bytes() const;

 private:
  Py_buffer buffer_{};
};

// One array for each field of a batch.
nanobind::list arrays_of(const Batch& batch, Framework framework);

}  // namespace feedline::python
