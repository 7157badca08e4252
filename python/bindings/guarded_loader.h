// SPDX-License-Identifier: Apache-2.0
#pragma once

// A Loader that any Python thread may use: calls that the engine wants from one thread at a time wait for each other,
// never with the GIL held. Requires of every method: the GIL is held; each gives it away while it waits.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "feedline/loader.h"

namespace feedline::python {

class GuardedLoader {
 public:
  explicit GuardedLoader(Loader loader);

  // The next batch; nullopt: the epoch is over. Looks after Python's signals at least every 100 ms, and throws
  // nanobind::python_error when a handler raised.
  Result<std::optional<Batch>> next();
  Result<void> start_epoch();
  void set_epoch(std::uint64_t epoch);
  Result<void> restore(const LoaderState& state);
  void close();

  // Bad samples since the last call.
  std::vector<BadSample> take_errors();

  const Loader& loader() const { return loader_; }

 private:
  template <typename F>
  auto alone(F call);

  Loader loader_;
  std::mutex mutex_;
  std::atomic<bool> closing_ = false;
  const pid_t process_;
  std::size_t taken_ = 0;  // errors that take_errors() has handed out
};

}  // namespace feedline::python
