// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work left to the device: computing floats from images whose rows were filled with bytes.
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
  // Returns nullptr if there is no work for the device. filled: the schema of the rows that threads fill. mixes:
  // whether rows are mixed.
  static std::shared_ptr<const DevicePostprocess> make(const Recipe& recipe, const Schema& filled, bool mixes);

  // The schema and the layout of a batch after device work.
  Schema delivered(Schema filled) const;
  std::shared_ptr<const batch::BatchLayout> delivered(const batch::BatchLayout& filled) const;
  // Returns the bytes of device input after the fields of a batch with this many rows.
  std::size_t extra_bytes(std::uint64_t rows) const;
  // Returns true if the device makes the field's content.
  bool makes(std::size_t field) const { return field < device_elements_.size() && device_elements_[field] != nullptr; }
  // Clears a row whose sample is missing, so the device does nothing for it.
  void clear_row(const batch::BatchLayout& filled, std::byte* data, std::uint64_t row) const;
  // Writes the device's input after the fields at `data` and returns its work. rows: number of output rows, made from
  // filled_rows. mixed: one for each output row; empty if nothing is mixed.
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
