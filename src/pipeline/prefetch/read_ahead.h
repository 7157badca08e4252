// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches the next samples of the plan while the threads decode, if the storage is slow.
//
//   near     threads read on their own, as without this class, and measure how long it takes
//   far      one thread keeps ReadDepth reads in flight; a thread that needs a sample takes its fetch, or waits for it
//
// near -> far if reads wait for a device or a network (read_speed.h), and for remote storage. far -> near if nearly all
// of 256 consecutive fetches were served from memory; for remote storage, if all of it is cached. In an epoch whose
// data is cached, this class uses no thread, no lock and no memory.
//
// Owners and threads:
//
//   ReadAhead        the state, near or far, and reads of samples                              the pipeline's threads
//   FetchScheduler    the lock, and the state shared with the fetching thread                   all
//     FetchOrder       the next sample                                                         under the lock
//     FetchPool       the fetches, their number and their memory                              under the lock
//   FetchThread      the queue of the reads in flight                                          the fetching thread
//   ShardPrefetcher      for cached storage: whole shards, before all of the above                 all, and its own
//
// A failed fetch is not reported: the thread that needs the sample reads it again, and reports the error of that read.
//
// Reads have no deadline, because the set of good samples would otherwise depend on the speed of the storage. A read
// that never completes causes a missing batch: the loader's timeout reports it, and close() does not wait for fetches.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/test_conditions.h"
#include "feedline/loader.h"
#include "format/format.h"
#include "pipeline/prefetch/fetch_scheduler.h"
#include "pipeline/prefetch/fetch_thread.h"
#include "pipeline/prefetch/shard_prefetcher.h"
#include "pipeline/sample/part_reads.h"
#include "pipeline/sample/record_reader.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

using base::ReadAheadMode;

// Any thread may call read(), reader(), held_bytes(), held() and explain(); only the pipeline's owner may call begin()
// and stop().
class ReadAhead {
 public:
  // Returns nullptr if `format` is nullptr, the format fetches no data, or read-ahead is disabled. The plan must
  // outlive the result.
  // parts: reads ranges of images; nullptr to read whole samples.
  static std::unique_ptr<ReadAhead> make(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                                         ReadAheadMode mode, std::unique_ptr<const PartReads> parts = nullptr);
  ~ReadAhead();  // calls stop()

  // goes_on: another epoch is likely to follow this one. epoch: its number.
  void begin(bool goes_on, std::uint64_t epoch);
  // For an order given by the caller: adds the samples of the epoch's next batch. Samples of batches before `oldest`
  // are no longer needed.
  void give(std::span<const GivenSample> samples, std::uint64_t oldest) { scheduler_.give(samples, oldest); }
  // Makes current and later calls to read() that wait for a fetch return kCancelled immediately, without waiting for
  // the reads.
  void cancel();
  // Cancels and joins the thread. Requires: no thread calls read() now or later.
  void stop();

  // State of one thread: the speed of its own reads, and the notification of finished fetches.
  struct Watch {
    int slow = 0;
    std::shared_ptr<FetchWaiter> waiter;
    // of a fetched sample; its buffers are swapped with the record's
    FetchTable::Parts parts;
    std::vector<std::span<const std::byte>> bytes;
    std::unique_ptr<PartReads::Finder> finder;  // of ranges that were not fetched
  };
  // Returns a reader for one thread; it must not outlive this object.
  std::unique_ptr<RecordReader> reader();
  // Like RecordReader::read(), for the thread that owns `watch`.
  Result<void> read(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key, memory::Record& record,
                    Watch& watch);

  std::uint64_t held_bytes() const { return scheduler_.held_bytes(); }
  telemetry::HeldBytes& held() { return held_; }  // including what others hold ahead
  std::string explain() const;

 private:
  ReadAhead(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, ReadAheadMode mode,
            std::unique_ptr<const PartReads> parts);
  Result<void> read_near(std::uint64_t sample, memory::Record& record, Watch& watch);
  Result<void> read_far(const PlanRow& row, std::uint64_t sample, const base::SampleKey& key, memory::Record& record,
                        Watch& watch);
  Result<void> read_missed(std::uint64_t sample, const base::SampleKey& key, memory::Record& record,
                           Watch& watch) const;
  Result<void> accept(std::uint64_t sample, std::span<FetchTable::Part> parts, memory::Record& record,
                      Watch& watch) const;
  void go_far();

  const std::shared_ptr<const format::RecordFormat> format_;
  const std::unique_ptr<const PartReads> parts_;  // nullptr: samples are read whole
  const PipelinePlan& plan_;
  const ReadAheadMode mode_;
  std::atomic<bool> is_cancelled_{false};
  telemetry::HeldBytes held_;  // any thread
  FetchScheduler scheduler_;
  const std::unique_ptr<ShardPrefetcher> shard_prefetcher_;  // nullptr: no shards are cached
  std::unique_ptr<FetchThread> thread_;                      // started by the thread selected by the scheduler
};

}  // namespace feedline::pipeline
