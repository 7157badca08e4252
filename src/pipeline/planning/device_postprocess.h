// SPDX-License-Identifier: Apache-2.0
#pragma once

// The part of the work that is left to the device: computing elements from images whose rows were filled with bytes.
//
//   filled, on the host    | fields as in BatchLayout | tables of each field | how rows are mixed | rectangles |
//   on the device          | floats of each image field | a copy of everything above |

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/finish.h"
#include "feedline/array.h"

namespace feedline::batch {
class BatchLayout;
}
namespace feedline::transform {
struct DeviceElements;
struct RowMix;
}  // namespace feedline::transform

namespace feedline::pipeline {

struct Recipe;

// Immutable and thread-safe.
class DevicePostprocess {
 public:
  // Returns nullptr if there is no work for the device. filled: the schema of the rows that threads fill. mixes: the
  // device mixes rows.
  static std::shared_ptr<const DevicePostprocess> make(const Recipe& recipe, const Schema& filled, bool mixes);

  // These functions return the schema and the layout of a batch after device work.
  Schema delivered(Schema filled) const;
  std::shared_ptr<const batch::BatchLayout> delivered(const batch::BatchLayout& filled) const;
  // Returns the size of the device's input after the fields of a batch with this many rows, in bytes.
  std::size_t extra_bytes(std::uint64_t rows) const;
  // Returns whether the device computes the field.
  bool makes(std::size_t field) const { return field < device_elements_.size() && device_elements_[field] != nullptr; }
  // Clears a row whose sample is missing, so that the device ignores it.
  void clear_row(const batch::BatchLayout& filled, std::byte* data, std::uint64_t row) const;
  // Writes the device's input after the fields at `data`, and returns the device's work. rows: the number of output
  // rows, which are made from `filled_rows` rows. mixed: one element for each output row; empty if nothing is mixed.
  device::Finish finish(const batch::BatchLayout& filled, std::byte* data, std::uint64_t rows,
                        std::uint64_t filled_rows, std::span<const transform::RowMix> mixed) const;

 private:
  using ByField = std::vector<std::shared_ptr<const transform::DeviceElements>>;
  DevicePostprocess(ByField elements, bool mixes) : device_elements_(std::move(elements)), mixes_(mixes) {}
  std::size_t tables_bytes() const;
  std::size_t mixed_bytes(std::uint64_t rows) const;

  const ByField device_elements_;  // by field; nullptr: delivered as filled
  const bool mixes_;
};

}  // namespace feedline::pipeline
