// SPDX-License-Identifier: Apache-2.0
#pragma once

// The thread that runs the reads in flight, as instructed by FetchScheduler::next(). This thread owns the queue of
// reads; no other thread starts, cancels or completes reads.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/thread.h"
#include "format/format.h"
#include "pipeline/prefetch/fetch_scheduler.h"
#include "pipeline/sample/part_reads.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

// The thread has one owner, and start() may succeed only once. The plan and the scheduler must outlive this object.
// Requires at destruction: the scheduler is stopped, and no thread calls it any more. The destructor joins the thread
// without waiting for its reads.
class FetchThread {
 public:
  FetchThread(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, storage::QueueKind kind,
              FetchScheduler& scheduler, const PartReads* parts);
  bool start();  // false if no thread could be created

 private:
  void run();
  void fetch(FetchTable::Entry& entry);
  void fetch_shared(FetchTable::Part& part);
  void note_finished(FetchTable::Queued& fetch);
  void cancel_all();
  void plan_behind(const FetchOrder::PlannedEpoch& ended);
  void wait();
  void break_off();

  const std::shared_ptr<const format::RecordFormat> format_;
  const PipelinePlan& plan_;
  const storage::QueueKind kind_;
  std::optional<PartReads::Finder> finder_;  // nullopt: samples are read whole
  FetchScheduler& scheduler_;
  std::unique_ptr<storage::FetchQueue> queue_;  // created by the thread
  std::vector<storage::Fetch*> finished_;
  std::vector<storage::Piece> pieces_;
  // the shared fetches that entries or readers still own, by reader, offset and size
  using Range = std::tuple<const storage::Reader*, std::uint64_t, std::uint64_t>;
  std::map<Range, std::weak_ptr<FetchTable::Shared>> shared_;
  std::optional<base::Thread> thread_;  // last member: it uses all of the above
};

}  // namespace feedline::pipeline
