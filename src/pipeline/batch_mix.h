// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix: rows of a batch mixed with each other once all of them are there, and before the device begins.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "feedline/loader.h"
#include "memory/row.h"
#include "transform/mixup.h"

namespace feedline::batch {
class BatchLayout;
}
namespace feedline::transform {
struct LeftElements;
}

namespace feedline::pipeline {

struct Recipe;

// What is mixed, checked before the first read. Immutable and thread-safe; allocates nothing once it is made, unless a
// device mixes.
class BatchMix {
 public:
  // nullptr: the options ask for nothing. kConfig: numbers out of range, samples without an image or a class, images
  // that cannot be mixed, targets of an unknown number of classes, rows that do not come in pairs.
  static Result<std::shared_ptr<const BatchMix>> make(const Recipe& recipe, const LoaderOptions& options);

  const Schema& schema() const { return schema_; }  // of a row that was mixed: the label is its target
  std::size_t label() const { return label_; }      // its field
  // kData: the class that a row was filled with is none of the targets'.
  Result<void> check(std::span<const memory::Row> row) const;
  // Rows that are delivered of so many that were filled.
  std::uint64_t rows_of(std::uint64_t filled) const { return mode_ == MixMode::kHalf ? (filled + 1) / 2 : filled; }
  // Mixes `rows` rows of a batch at `data`, and makes their targets of their classes. key: of the batch, in place of a
  // sample. Gives what a device does with each row that comes out, where the images of a field are left to one; else
  // nothing.
  std::vector<transform::RowMix> mix(const batch::BatchLayout& layout, std::byte* data, std::uint64_t rows,
                                     const base::SampleKey& key) const;
  std::string explain() const;

 private:
  struct Rows;
  BatchMix() = default;
  Result<void> take_options(const LoaderOptions& options);
  Result<void> take_fields(const Recipe& recipe, Layout layout);
  Result<void> take_image(const FieldSpec& field, const transform::LeftElements* left, std::size_t place,
                          Layout layout);
  Result<void> take_classes(const Recipe& recipe, const LoaderOptions& options);
  transform::Mix draw(const base::SampleKey& key, std::uint64_t unit) const;
  void mix_whole(const Rows& rows, const base::SampleKey& key) const;
  void mix_in_pairs(const Rows& rows, const base::SampleKey& key) const;
  void mix_pair(const Rows& rows, std::uint64_t first, const base::SampleKey& key) const;

  transform::MixRules rules_;
  MixMode mode_ = MixMode::kBatch;
  MixPartner partner_ = MixPartner::kRoll;
  double smoothing_ = 0;
  Schema schema_;
  std::size_t label_ = 0;
  std::int64_t classes_ = 0;
  std::vector<std::size_t> images_;           // fields
  std::vector<transform::MixedRows> shapes_;  // of each, without data
  std::vector<bool> is_left_;                 // to a device
  bool leaves_images_ = false;                // any of them
};

}  // namespace feedline::pipeline
