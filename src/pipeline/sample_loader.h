// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "decode/decoder.h"
#include "feedline/array.h"
#include "memory/pixels.h"
#include "memory/record.h"
#include "pipeline/source.h"
#include "telemetry/stage_counters.h"
#include "transform/chain.h"

namespace feedline::pipeline {

// The path of one sample: read, decode the needed region, transform into the row. Holds the scratch memory of one
// thread; not for several at once.
class SampleLoader {
 public:
  // counters: of this thread; nullptr: count nothing. Outlives the loader.
  SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters);

  // Fills `rows`, one view per field of the schema. What it writes depends on `key` and the stored bytes of sample
  // `index` alone. On an error, which says where, the rows' contents are unspecified.
  Result<void> load(std::uint64_t index, const base::SampleKey& key, std::span<const ArrayView> rows);

  // The same of an image that is in memory, into the row of an image field.
  Result<void> load_image(const base::SampleKey& key, std::span<const std::byte> encoded, ArrayView row);

  // Samples that are arrays, into rows that follow each other: `first_rows` are the views of the first one.
  Result<void> fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows);

  // Reads and draws, but decodes nothing: the encoded image and the drawing for it, of the first image field.
  struct Drawn {
    std::span<const std::byte> encoded;  // valid until the next call
    Size image;
    const transform::Drawing* drawing;  // likewise
  };
  Result<Drawn> draw(const base::SampleKey& key);

 private:
  void count(telemetry::Stage stage, std::uint64_t started_ns, std::uint64_t bytes, std::uint64_t sample);

  std::shared_ptr<const Recipe> recipe_;
  telemetry::ThreadCounters* counters_;
  memory::Record record_;
  decode::ImageDecoder decoder_;
  memory::PixelBuffer pixels_;
  transform::Drawing drawing_;
  transform::Workspace workspace_;
};

}  // namespace feedline::pipeline
