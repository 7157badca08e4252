// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches the samples that the plan has next while the threads decode, once the storage turns out to be slow.
//
//   near     threads read by themselves, as without this class, and notice how long it takes
//   far      one thread keeps ReadDepth reads under way and hands finished ones over; a thread that comes for a sample
//            finds it, or waits for it
//
// near -> far when reads wait for a device or a network (read_speed.h); far -> near when what was fetched was in memory
// 256 times in a row, but for a few. In a warm epoch there is no thread, no lock and no memory here.
//
// Its lock is held briefly, as the pipeline's (brief_lock.h): fetches are found by their sample, each wakes the one
// thread that waits for it, and what asks the system for something (to start the thread, to wake it, to give memory
// back) happens beside the lock.
//
// A fetch that fails is nobody's error: the thread that comes for the sample reads it by itself, and what goes wrong
// then is that sample's error.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread.h"
#include "feedline/loader.h"
#include "format/format.h"
#include "pipeline/brief_lock.h"
#include "pipeline/fetch_table.h"
#include "pipeline/read_depth.h"
#include "plan/plan.h"
#include "storage/fetch.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

struct PipelinePlan;

// A row of an epoch, in the order in which rows are handed out.
struct PlanRow {
  std::uint64_t epoch = 0;
  const std::shared_ptr<const plan::Plan>* plan = nullptr;  // nullptr: the order is given, or the row is in no order
  std::uint64_t batch = 0;
  std::uint64_t row = 0;
  bool is_given = false;
};

enum class ReadAheadMode : std::uint8_t {
  kAuto,  // when the storage is slow
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
  void give(std::span<const GivenSample> samples, std::uint64_t oldest);
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

  std::uint64_t held_bytes() const;
  telemetry::HeldBytes& held() { return held_; }  // with what others hold ahead
  std::string explain() const;

 private:
  // What is to be fetched next; no plan, and not given: not known.
  struct Cursor {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Plan> plan;
    std::uint64_t batch = 0;
    std::uint64_t row = 0;
    bool is_next_epoch = false;  // of an epoch that is not begun yet
    bool is_given = false;
  };
  // The batches that were given, from number `first` on.
  struct GivenBatches {
    std::uint64_t first = 0;
    std::deque<std::vector<std::uint64_t>> samples;
  };

  ReadAhead(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan, ReadAheadMode mode);
  Result<void> read_near(std::uint64_t sample, memory::Record& record, Watch& watch);
  Result<void> read_far(const PlanRow& row, std::uint64_t sample, memory::Record& record, Watch& watch);
  bool take(const PlanRow& row, std::uint64_t sample, Watch& watch, std::size_t& used);
  Result<void> accept(std::uint64_t sample, std::span<FetchTable::Part> parts, memory::Record& record,
                      Watch& watch) const;
  void run();
  void serve();
  void cancel_all(BriefLock& lock);
  void give_up();

  // What is to be done once the lock is given back.
  struct After {
    storage::FetchQueue* sleeping = nullptr;             // is to be woken
    FetchTable::Entries unused;                          // their memory goes back
    std::vector<std::shared_ptr<FetchWaiter>> finished;  // for whom a fetch is
    std::shared_ptr<const plan::Plan> plan;              // nobody follows it any more
  };
  static void do_after(After& after);
  void go_far();

  // under mutex_
  void go_near(After& after);
  void wake(After& after);
  void missed(const PlanRow& row, After& after);
  void abandon(std::uint64_t before, After& after);  // entries of lower numbers
  std::optional<std::uint64_t> next_sample();
  std::optional<std::uint64_t> next_given();
  void completed(FetchTable::Part& part, After& after);
  void completed(FetchTable::Entry& entry, After& after);
  void put_away(FetchTable::Entry& entry, After& after);
  std::size_t room() const;  // for entries
  bool needs_next_epoch() const;
  // with it, and without it meanwhile
  bool top_up(BriefLock& lock, FetchTable::Entries& fresh);
  void start(BriefLock& lock, FetchTable::Entry& entry);
  void prepare_next_epoch(BriefLock& lock);

  const std::shared_ptr<const format::RecordFormat> format_;
  const PipelinePlan& plan_;
  const ReadAheadMode mode_;
  const std::size_t parts_;    // of a sample, at most
  const std::uint64_t slack_;  // entries that threads may still come for after one behind them was taken
  std::atomic<bool> is_far_{false};
  std::atomic<bool> is_cancelled_{false};

  mutable std::mutex mutex_;
  // guarded by mutex_
  ReadDepth depth_;
  Cursor next_;
  GivenBatches given_;
  bool goes_on_ = false;
  FetchTable entries_;
  std::unique_ptr<FetchTable> nothing_ = std::make_unique<FetchTable>(1);  // what the entries become in give_up()
  FetchTable::Entries spare_;                                              // for their buffers
  std::uint64_t numbers_ = 0, under_way_ = 0, most_under_way_ = 0;
  telemetry::HeldBytes held_;  // any thread
  telemetry::HeldPart held_bytes_{held_};
  std::uint64_t spare_bytes_ = 0;  // of held_bytes_, in spare_
  std::uint64_t mean_bytes_;
  std::uint64_t misses_ = 0;  // in a row
  int near_ = 0;              // fetches that found their bytes in memory, less those that did not
  bool is_asleep_ = false;    // the thread, until its queue is woken
  bool stopping_ = false;
  bool is_broken_ = false;                      // the thread is gone
  bool is_starting_ = false;                    // somebody starts it
  std::unique_ptr<storage::FetchQueue> queue_;  // made by the thread
  std::vector<storage::Piece> pieces_;          // the thread's alone
  std::optional<base::Thread> thread_;
};

}  // namespace feedline::pipeline
