// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "pipeline/batch_scheduler.h"
#include "pipeline/workers/progress.h"
#include "pipeline/workers/row_filler.h"

namespace feedline::pipeline {

// A worker thread of a pipeline: takes rows from the scheduler and fills them until the pipeline stops. The worker is
// created and used on that thread; the filler, the counters and the progress must outlive it.
class Worker {
 public:
  // number: the worker's index. stage: the worker's counters for batches.
  Worker(std::size_t number, BatchScheduler& scheduler, RowFiller& filler, telemetry::StageCounters& stage,
         Progress& progress);

  void run();

 private:
  bool fill(Task& task);

  const std::size_t number_;
  BatchScheduler& scheduler_;
  RowFiller& filler_;
  telemetry::StageCounters& stage_;
  Progress& progress_;
};

}  // namespace feedline::pipeline
