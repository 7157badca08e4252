// SPDX-License-Identifier: Apache-2.0
#include "loading/guarded_loader.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "interop/errors.h"
#include "interop/gil.h"

namespace nb = nanobind;

namespace feedline::python {
namespace {

using std::chrono::milliseconds;

// The first wait is short, so that a signal that arrived just before is handled at once; none is so long that Ctrl-C
// would take more than 100 ms.
constexpr milliseconds kFirstWait{10};
constexpr milliseconds kLongestWait{50};

}  // namespace

GuardedLoader::GuardedLoader(Loader loader) : loader_(std::move(loader)) {}

GuardedLoader::~GuardedLoader() { close(); }

// In a child the engine rejects calls that would wait for threads that do not exist there. This check precedes any
// lock, ours or the engine's: a lock that another thread held at the fork stays locked in the child forever.
void GuardedLoader::refuse_child() const {
  const pid_t started_in = started_in_;
  if (started_in != 0 && started_in != getpid()) {
    raise_config("this loader was started before fork(): create a loader in the child");
  }
}

template <typename F>
auto GuardedLoader::alone(F call) {
  refuse_child();
  const WithoutGil released;
  const std::lock_guard lock(mutex_);
  return call();
}

Result<std::optional<Batch>> GuardedLoader::next(std::optional<std::uint64_t> run) {
  for (milliseconds wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    Batch batch;
    // Between two waits the mutex is free for close(); closing_ ensures that close() gets it.
    const milliseconds this_wait = closing_ ? milliseconds{0} : wait;
    auto polled = alone([&]() -> Result<Loader::Polled> {
      if (run.value_or(run_) != run_ || is_over_) return Loader::Polled::kEnd;
      started_in_ = getpid();
      auto result = loader_.poll(this_wait, batch);
      if (result && *result == Loader::Polled::kEnd) is_over_ = true;
      const auto errors = loader_.error_count();
      has_errors_ = errors && *errors > taken_;
      return result;
    });
    if (!polled) return std::unexpected(std::move(polled).error());
    if (*polled == Loader::Polled::kBatch) return std::optional(std::move(batch));
    if (*polled == Loader::Polled::kEnd) return std::optional<Batch>();
    const CallingPython calling;  // a handler is Python code
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

Result<std::uint64_t> GuardedLoader::start_epoch(const EpochOptions& options) {
  return alone([&]() -> Result<std::uint64_t> {
    started_in_ = getpid();
    if (auto started = loader_.start_epoch(options); !started) return std::unexpected(std::move(started).error());
    is_over_ = false;
    return ++run_;
  });
}

void GuardedLoader::set_epoch(std::uint64_t epoch) {
  alone([&] { loader_.set_epoch(epoch); });
}

Result<void> GuardedLoader::set_sampling(std::shared_ptr<const Sampling> sampling) {
  return alone([&] { return loader_.set_sampling(std::move(sampling)); });
}

Result<void> GuardedLoader::set_mix_weights(const std::vector<double>& weights) {
  return alone([&] { return loader_.set_mix_weights(weights); });
}

Result<void> GuardedLoader::give(std::vector<GivenSample> samples) {
  return alone([&] { return loader_.give(std::move(samples)); });
}

Result<void> GuardedLoader::end_giving() {
  return alone([&] { return loader_.end_giving(); });
}

std::uint64_t GuardedLoader::epoch() {
  return alone([&] { return loader_.epoch(); });
}

std::uint64_t GuardedLoader::next_epoch() {
  return alone([&] { return loader_.next_epoch(); });
}

Result<void> GuardedLoader::restore(const LoaderState& state) {
  return alone([&] {
    auto restored = loader_.restore(state);
    if (restored) ++run_, is_over_ = true;
    return restored;
  });
}

Result<LoaderState> GuardedLoader::state() {
  return alone([&] { return loader_.state(); });
}

void GuardedLoader::close() {
  const pid_t started_in = started_in_;
  if (started_in != 0 && started_in != getpid()) return;
  closing_ = true;
  alone([&] { loader_.close(); });
}

Result<std::vector<std::uint64_t>> GuardedLoader::rows_per_rank() {
  refuse_child();
  const WithoutGil released;
  return loader_.rows_per_rank();
}

Result<LoaderStats> GuardedLoader::stats() {
  refuse_child();
  const WithoutGil released;
  return loader_.stats();
}

Result<std::vector<BadSample>> GuardedLoader::errors() {
  refuse_child();
  const WithoutGil released;
  return loader_.errors();
}

Result<std::vector<BadSample>> GuardedLoader::take_errors() {
  has_errors_ = false;
  return alone([&] {
    auto errors = loader_.errors(taken_);
    if (errors) taken_ += errors->size();
    return errors;
  });
}

Result<std::string> GuardedLoader::explain() {
  refuse_child();
  const WithoutGil released;
  return loader_.explain();
}

std::uint64_t GuardedLoader::batches() const {
  const WithoutGil released;
  return loader_.batches();
}

Result<std::optional<PackSegments>> GuardedLoader::segments(const Batch& batch) {
  const WithoutGil released;
  return loader_.segments(batch);
}

Result<std::uint64_t> GuardedLoader::batches_in(std::uint64_t epoch) {
  refuse_child();
  const WithoutGil released;
  return loader_.batches_in(epoch);
}

Result<PackCounts> GuardedLoader::pack_counts(std::uint64_t epoch, std::optional<std::uint64_t> windows) {
  refuse_child();
  const WithoutGil released;
  return loader_.pack_counts(epoch, windows);
}

}  // namespace feedline::python
