// SPDX-License-Identifier: Apache-2.0
#pragma once

// Engine arrays as Python's, and Python's bytes as the engine's, without a copy. Requires: the GIL is held.

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

// kDlpack: a DeviceArray, for any library that takes arrays by DLPack.
enum class Framework { kNumpy, kTorch, kDlpack };

nanobind::dlpack::dtype dlpack_dtype(DType dtype);

// A writable NumPy array or torch tensor on `view`, which keeps `memory` alive as long as it or a view of it lives.
// Imports the framework at the first call.
nanobind::object to_array(const ArrayView& view, std::shared_ptr<void> memory, Framework framework);

// The same of an array of a batch, wherever that is. On a GPU a torch tensor or a DeviceArray: torch's current stream
// waits for it, and not the host.
nanobind::object to_array(const ArrayView& view, const Batch& batch, Framework framework);

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

// What Python has of a batch, for each of field_names(): an array, or a list with an array, bytes, text or a parsed
// object for each row, and None for a row that is absent or bad. Arrays of a list are parts of one buffer. Waits,
// without the GIL, for a device that has no streams to wait in its place. Raises feedline.Error where that has failed,
// and DataError for text or JSON that is none.
nanobind::list arrays_of(const Batch& batch, Framework framework);
// The same of one sample, each with its name.
nanobind::list rows_of(std::shared_ptr<Sample> sample);

// One row of text, JSON or bytes, as Python has it. The field's name and the sample are for messages.
nanobind::object stored_row(std::span<const std::byte> bytes, Content content, std::string_view field,
                            std::optional<std::uint64_t> sample);

// The fields of a batch or a sample as Python names them: behind a padded one, NAME_length.
std::vector<std::string> field_names(const Schema& schema);

}  // namespace feedline::python
