// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "storage/reader.h"

namespace feedline::pipeline {

// A video that was opened in advance, with the bytes of one clip. Owns the bytes, and shares the reader with other
// clips. Never changes after it was made, so the thread that fetched it passes it to a worker without a lock.
struct FetchedVideo {
  struct Range {
    std::uint64_t offset = 0;
    std::vector<std::byte> content;
  };
  std::shared_ptr<const storage::Reader> reader;
  std::uint64_t size = 0, key = 0;  // as in VideoSource
  std::vector<Range> ranges;

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Range& range : ranges) sum += range.content.size();
    return sum;
  }
};

// The videos of one sample.
struct FetchedClips {
  std::vector<std::shared_ptr<const FetchedVideo>> videos;  // by field; nullptr: not fetched
  std::uint64_t bytes = 0;
};

}  // namespace feedline::pipeline
