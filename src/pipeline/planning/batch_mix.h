// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix: mix the rows of a batch after all rows are filled and before device work starts.

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
struct DeviceElements;
}

namespace feedline::pipeline {

struct Recipe;

// The options for mixing, which are checked before the first read. Immutable and thread-safe; after construction, this
// class allocates memory only if a device mixes.
class BatchMix {
 public:
  // Returns nullptr if the options do not request mixing. kConfig: numbers out of range, samples without an image or a
  // class, images that cannot be mixed, an unknown number of classes, or an odd number of rows.
  static Result<std::shared_ptr<const BatchMix>> make(const Recipe& recipe, const LoaderOptions& options);

  const Schema& schema() const { return schema_; }  // of a mixed row: the label holds its target
  std::size_t label() const { return label_; }      // index of its field
  // Returns kData if the class of the row is out of range.
  Result<void> check(std::span<const memory::Row> row) const;
  // Returns the number of rows delivered from a batch of `filled` rows.
  std::uint64_t rows_of(std::uint64_t filled) const { return mode_ == MixMode::kHalf ? (filled + 1) / 2 : filled; }
  // Mixes `rows` rows of a batch at `data`, and computes targets from their classes. key: identifies the batch, not a
  // sample. If a device mixes images, returns its work for each output row; otherwise an empty vector.
  std::vector<transform::RowMix> mix(const batch::BatchLayout& layout, std::byte* data, std::uint64_t rows,
                                     const base::SampleKey& key) const;
  std::string explain() const;

 private:
  struct Rows;
  BatchMix() = default;
  Result<void> take_options(const LoaderOptions& options);
  Result<void> take_fields(const Recipe& recipe, Layout layout);
  Result<void> take_image(const FieldSpec& field, const transform::DeviceElements* elements, std::size_t field_index,
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
  std::vector<std::size_t> images_;           // field indices
  std::vector<transform::MixedRows> shapes_;  // of each field, without data
  std::vector<bool> is_on_device_;            // left to a device
  bool has_device_images_ = false;            // true for any field
};

}  // namespace feedline::pipeline
