// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one thread that keeps reads under way: it does what FetchExchange::next() says. It owns the queue of the reads,
// and nobody else starts, cancels or takes any.

#include <memory>
#include <optional>
#include <vector>

#include "base/thread.h"
#include "format/format.h"
#include "pipeline/fetch_exchange.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

// For whoever owns it; one start() that succeeds. The plan and the exchange outlive it. Requires: the exchange is
// stopped, and nobody calls it any more, when this goes, which waits for the thread and for none of its reads.
class FetchThread {
 public:
  FetchThread(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, storage::QueueKind kind,
              FetchExchange& exchange);
  bool start();  // false: the system gives no thread

 private:
  void run();
  void fetch(FetchTable::Entry& entry);
  void plan_behind(const FetchOrder::PlannedEpoch& ended);
  void wait();
  void break_off();

  const std::shared_ptr<const format::RecordFormat> format_;
  const PipelinePlan& plan_;
  const storage::QueueKind kind_;
  FetchExchange& exchange_;
  std::unique_ptr<storage::FetchQueue> queue_;  // made by the thread
  std::vector<storage::Fetch*> finished_;
  std::vector<storage::Piece> pieces_;
  std::optional<base::Thread> thread_;  // last: it uses all of the above
};

}  // namespace feedline::pipeline
