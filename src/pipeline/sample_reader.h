// SPDX-License-Identifier: Apache-2.0
#pragma once

// Single samples, for the consumer, which knows neither decoders nor transforms.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/row.h"
#include "pipeline/recipe.h"

namespace feedline::pipeline {

class SampleLoader;

// See feedline::SampleReader. Keeps the scratch memory of one thread; not for several at once.
class SampleReader {
 public:
  explicit SampleReader(std::shared_ptr<const Recipe> recipe);
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const Schema& schema() const;  // of one sample
  // kConfig: index out of range.
  Result<Sample> read(const GivenSample& sample, std::uint64_t seed, std::uint64_t epoch,
                      memory::RowUse use = memory::RowUse::kKept);
  // Of an image file that is in memory. kConfig: a sample is more than one image.
  Result<Sample> read(std::span<const std::byte> encoded, const base::SampleKey& key);
  // Of decoded pixels. kConfig: likewise, no pixels, neither 1 nor 3 channels.
  Result<Sample> read(const GivenPixels& pixels, const base::SampleKey& key);
  // What is drawn for a stored sample; reads its image's header. kConfig: index out of range, or no image.
  Result<std::vector<DrawnValue>> draw(const base::SampleKey& key);

 private:
  std::shared_ptr<const Recipe> recipe_;
  Source source_;
  std::unique_ptr<SampleLoader> loader_;
  std::vector<memory::OwnRow> own_;
  memory::PixelBuffer given_;  // pixels of the caller's, with the room behind each row that kernels ask for
};

}  // namespace feedline::pipeline
