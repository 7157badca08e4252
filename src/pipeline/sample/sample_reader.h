// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads single samples for the consumer, which must not depend on decoders or transforms.

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
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

class SampleLoader;

// See feedline::SampleReader. Holds the scratch memory of one thread and must not be shared.
class SampleReader {
 public:
  explicit SampleReader(std::shared_ptr<const Recipe> recipe);
  SampleReader(SampleReader&&) noexcept;
  SampleReader& operator=(SampleReader&&) noexcept;
  ~SampleReader();

  const Schema& schema() const;  // of one sample
  // kConfig: the index is out of range.
  Result<Sample> read(const GivenSample& sample, std::uint64_t seed, std::uint64_t epoch,
                      memory::RowUse use = memory::RowUse::kKept);
  // Reads an encoded image in memory. kConfig: samples have more than one image.
  Result<Sample> read(std::span<const std::byte> encoded, const base::SampleKey& key);
  // Reads decoded pixels. kConfig: samples have more than one image, there are no pixels, or the number of channels is
  // neither 1 nor 3.
  Result<Sample> read(const GivenPixels& pixels, const base::SampleKey& key);
  // Returns the values drawn for a stored sample; reads the header of its image. kConfig: the index is out of range, or
  // the sample has no image.
  Result<std::vector<DrawnValue>> draw(const base::SampleKey& key);

 private:
  std::shared_ptr<const Recipe> recipe_;
  Source source_;
  std::unique_ptr<SampleLoader> loader_;
  std::vector<memory::OwnRow> own_;
  memory::PixelBuffer given_;  // the caller's pixels, with the slack after each row that kernels need
};

}  // namespace feedline::pipeline
