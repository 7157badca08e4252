// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a device is left to make of a batch: floats of the images whose rows threads fill with bytes.
//
//   filled, on the host    | fields as BatchLayout has them | tables of each field | how rows are mixed | rectangles |
//   on the device          | floats of each image field | all of the above, as it was filled |

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
struct LeftElements;
struct RowMix;
}  // namespace feedline::transform

namespace feedline::pipeline {

struct Recipe;

// Immutable and thread-safe.
class Finishing {
 public:
  // nullptr: nothing is left. filled: the schema of the rows that threads fill. mixes: are rows mixed with each other?
  static std::shared_ptr<const Finishing> make(const Recipe& recipe, const Schema& filled, bool mixes);

  // What comes out of a batch of rows of `filled`.
  Schema delivered(Schema filled) const;
  std::shared_ptr<const batch::BatchLayout> delivered(const batch::BatchLayout& filled) const;
  // Behind the fields of a batch of so many rows, of what the device reads.
  std::size_t extra_bytes(std::uint64_t rows) const;
  // Is the field's content made by the device?
  bool makes(std::size_t field) const { return field < left_.size() && left_[field] != nullptr; }
  // A row of which the device is to make nothing, as its sample could not be had.
  void clear_row(const batch::BatchLayout& filled, std::byte* data, std::uint64_t row) const;
  // Writes what the device reads behind the fields at `data`, and says what is to be done. rows: that come out, of so
  // many that were filled. mixed: of each of them; empty: nothing is mixed.
  device::Finish finish(const batch::BatchLayout& filled, std::byte* data, std::uint64_t rows,
                        std::uint64_t filled_rows, std::span<const transform::RowMix> mixed) const;

 private:
  using Left = std::vector<std::shared_ptr<const transform::LeftElements>>;
  Finishing(Left left, bool mixes) : left_(std::move(left)), mixes_(mixes) {}
  std::size_t tables_bytes() const;
  std::size_t mixed_bytes(std::uint64_t rows) const;

  const Left left_;  // by field; nullptr: it is delivered as it was filled
  const bool mixes_;
};

}  // namespace feedline::pipeline
