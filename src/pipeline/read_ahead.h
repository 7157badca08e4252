// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches the samples that the plan has next while the threads decode, once the storage turns out to be slow.
//
//   near     threads read by themselves, as without this class, and notice how long it takes
//   far      one thread keeps ReadDepth reads under way and hands finished ones over; a thread that comes for a sample
//            finds it, or waits for it
//
// near -> far when reads wait for a device or a network (read_speed.h), and where a network is read from; far -> near
// when what was fetched was in memory 256 times in a row, but for a few: of a network, once all of it is in a cache. In
// a warm epoch there is no thread, no lock and no memory here.
//
// Who owns what, on which thread:
//
//   ReadAhead        which of the two it is, and a sample for the thread that comes for it     the pipeline's threads
//   FetchExchange    the lock, and what those threads share with the one that fetches          all
//     FetchOrder       which sample is next                                                    under the lock
//     FetchStock       the fetches, how many, and their memory                                 under the lock
//   FetchThread      the queue of the reads, and what is under way in it                       the fetching thread
//   CopiesAhead      where a cache is over the storage: whole shards, before all of the above  all, and its own
//
// A fetch that fails is nobody's error: the thread that comes for the sample reads it by itself, and what goes wrong
// then is that sample's error.
//
// Reads have no deadline, whoever makes them: a sample would be there or not by how fast the storage was and who read
// it. What never comes is a batch that does not come: the loader's timeout tells of it, and close() waits for no fetch.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/loader.h"
#include "format/format.h"
#include "pipeline/copies_ahead.h"
#include "pipeline/fetch_exchange.h"
#include "pipeline/fetch_thread.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

enum class ReadAheadMode : std::uint8_t {
  kAuto,  // when the storage is slow; at once where it is remote
  kNever,
  kAlways,   // from the first sample on
  kThreads,  // like kAlways, and without io_uring
};
// From the environment variable FEEDLINE_READ_AHEAD ("never", "always", "threads"), for benchmarks and tests.
ReadAheadMode read_ahead_mode();

// Any thread may call read(), held_bytes(), held() and explain(); begin() and stop() belong to the pipeline's caller.
class ReadAhead {
 public:
  // nullptr: there is no format, or it has nothing to fetch, or it is not wanted. The plan outlives it.
  static std::unique_ptr<ReadAhead> make(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                                         ReadAheadMode mode);
  ~ReadAhead();  // stop()

  // goes_on: another epoch is likely to follow the one that begins.
  void begin(bool goes_on);
  // Where the order is given: the samples of the epoch's next batch. Nobody will come for those of batches before
  // `oldest`.
  void give(std::span<const GivenSample> samples, std::uint64_t oldest) { exchange_.give(samples, oldest); }
  // Whoever waits in read() for what is under way gets kCancelled at once, and so does who comes to it later; the reads
  // are waited for by nobody.
  void cancel();
  // cancel(), and ends the thread. Requires: nobody is in read(), nor comes to it later.
  void stop();

  // What a thread notices of its own reads, and how it is told that a fetch is finished; one per thread.
  struct Watch {
    int slow = 0;
    std::shared_ptr<FetchWaiter> waiter;
    // of a sample that is taken over; its buffers go round with the record's
    FetchTable::Parts parts;
    std::vector<std::span<const std::byte>> bytes;
  };
  // As format.read(). `row` is where the sample stands in the plan.
  Result<void> read(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch);

  std::uint64_t held_bytes() const { return exchange_.held_bytes(); }
  telemetry::HeldBytes& held() { return held_; }  // with what others hold ahead
  std::string explain() const;

 private:
  ReadAhead(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, ReadAheadMode mode);
  Result<void> read_near(std::uint64_t sample, memory::Record& record, Watch& watch);
  Result<void> read_far(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch);
  Result<void> accept(std::uint64_t sample, std::span<FetchTable::Part> parts, memory::Record& record,
                      Watch& watch) const;
  void go_far();

  const std::shared_ptr<const format::RecordFormat> format_;
  const PipelinePlan& plan_;
  const ReadAheadMode mode_;
  std::atomic<bool> is_cancelled_{false};
  telemetry::HeldBytes held_;  // any thread
  FetchExchange exchange_;
  const std::unique_ptr<CopiesAhead> copies_;  // nullptr: no shards are cached
  std::unique_ptr<FetchThread> thread_;        // started by the one whom the exchange told so
};

}  // namespace feedline::pipeline
