// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts engine arrays to Python arrays, and Python buffers to engine views, without a copy. Requires: the GIL is
// held.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/array.h"
#include "feedline/dataset.h"
#include "feedline/loader.h"

namespace feedline::python {

// kDlpack: a DeviceArray, for any library that supports DLPack.
enum class Framework { kNumpy, kTorch, kDlpack };

nanobind::dlpack::dtype dlpack_dtype(DType dtype);

// Returns a writable NumPy array or torch tensor of `view`, which keeps `memory` alive while it or a view of it exists.
// Imports the framework at the first call.
nanobind::object to_array(const ArrayView& view, std::shared_ptr<void> memory, Framework framework);

// The same for an array of a batch on any device. On a GPU it is a torch tensor or a DeviceArray: torch's current
// stream waits for it, and the host does not.
nanobind::object to_array(const ArrayView& view, const Batch& batch, Framework framework);

// "(3, 224, 224)" as a tuple of ints
nanobind::tuple to_tuple(const Shape& shape);

// A C-contiguous buffer (bytes, bytearray, memoryview, mmap), held for the lifetime of this object; the GIL may be
// released in the meantime. Raises TypeError or BufferError.
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

// Returns a batch as Python objects, one for each of field_names(): an array, or a list of arrays, bytes, strings or
// parsed objects, one per row, with None for a missing or bad row. A list's arrays share one buffer. Waits, without the
// GIL, for a device without streams. Raises feedline.Error if the device has failed, and DataError for invalid text or
// JSON.
nanobind::list arrays_of(const Batch& batch, Framework framework);
// The same for one sample, as pairs of name and value.
nanobind::list rows_of(std::shared_ptr<Sample> sample);

// Converts one row of text, JSON or bytes. The field's name and the sample are for messages.
nanobind::object stored_row(std::span<const std::byte> bytes, Content content, std::string_view field,
                            std::optional<std::uint64_t> sample);

// The Python names of the fields of a batch or a sample: a padded field is followed by NAME_length.
std::vector<std::string> field_names(const Schema& schema);

}  // namespace feedline::python
