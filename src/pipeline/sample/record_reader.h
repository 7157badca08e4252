// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface through which a thread reads the records of its samples. The interface hides prefetching from
// SampleLoader.

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "feedline/error.h"
#include "memory/record.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// A row of an epoch; rows are handed out in this order.
struct PlanRow {
  std::uint64_t epoch = 0;
  const std::shared_ptr<const plan::Plan>* plan = nullptr;  // nullptr if the order is given, or the row is in no order
  std::uint64_t batch = 0;
  std::uint64_t row = 0;
  bool is_given = false;
};

// Used by one thread.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  // Like RecordFormat::read(), but may read only a part of an image, which suffices for its crop with this key. row:
  // the position of the sample in the plan.
  virtual Result<void> read(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key,
                            memory::Record& record) = 0;
};

}  // namespace feedline::pipeline
