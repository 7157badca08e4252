// SPDX-License-Identifier: Apache-2.0
#include "guarded_loader.h"

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace nb = nanobind;

namespace feedline::python {
namespace {

using std::chrono::milliseconds;

// The first wait is short so that a signal that came just before is seen at once; none is so long that Ctrl-C
// would take more than 100 ms.
constexpr milliseconds kFirstWait{10};
constexpr milliseconds kLongestWait{50};

}  // namespace

GuardedLoader::GuardedLoader(Loader loader) : loader_(std::move(loader)), process_(getpid()) {}

template <typename F>
auto GuardedLoader::alone(F call) {
  nb::gil_scoped_release released;
  // In a child of fork() the mutex may have been copied locked, by a thread that does not exist there. The engine
  // refuses every call in a child, so none needs the lock.
  if (getpid() != process_) return call();
  const std::lock_guard lock(mutex_);
  return call();
}

Result<std::optional<Batch>> GuardedLoader::next() {
  for (milliseconds wait = kFirstWait;; wait = std::min(2 * wait, kLongestWait)) {
    Batch batch;
    // Between two waits the mutex is free for close(); closing_ makes sure that close() wins it.
    const milliseconds this_wait = closing_ ? milliseconds{0} : wait;
    auto polled = alone([&] { return loader_.poll(this_wait, batch); });
    if (!polled) return std::unexpected(std::move(polled).error());
    if (*polled == Loader::Polled::kBatch) return std::optional(std::move(batch));
    if (*polled == Loader::Polled::kEnd) return std::optional<Batch>();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

Result<void> GuardedLoader::start_epoch() {
  return alone([&] { return loader_.start_epoch(); });
}

void GuardedLoader::set_epoch(std::uint64_t epoch) {
  alone([&] { loader_.set_epoch(epoch); });
}

Result<void> GuardedLoader::restore(const LoaderState& state) {
  return alone([&] { return loader_.restore(state); });
}

void GuardedLoader::close() {
  closing_ = true;
  alone([&] { loader_.close(); });
}

std::vector<BadSample> GuardedLoader::take_errors() {
  return alone([&] {
    std::vector<BadSample> errors = loader_.errors();
    const std::size_t first = std::min(taken_, errors.size());
    taken_ = errors.size();
    errors.erase(errors.begin(), errors.begin() + static_cast<std::ptrdiff_t>(first));
    return errors;
  });
}

}  // namespace feedline::python
