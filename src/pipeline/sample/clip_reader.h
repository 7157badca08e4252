// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface through which a thread receives clips that were fetched in advance. It hides prefetching from
// SampleLoader.

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "pipeline/media/fetched_video.h"
#include "pipeline/sample/record_reader.h"

namespace feedline::pipeline {

// Thread-safe.
class ClipReader {
 public:
  virtual ~ClipReader() = default;
  // Returns what was fetched for a sample, waiting if its fetch is in flight; nullptr: nothing was. row: the position
  // of the sample in the plan.
  virtual std::shared_ptr<const FetchedClips> take(const PlanRow& row, std::uint64_t sample,
                                                   const base::SampleKey& key) = 0;
};

}  // namespace feedline::pipeline
