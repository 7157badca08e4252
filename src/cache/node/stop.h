// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cancels a fetch of a whole object from another thread, whatever the fetch is waiting for.

#include <atomic>
#include <functional>
#include <mutex>

namespace feedline::cache {

// Thread-safe. Serves one fetch at a time.
class Stop {
 public:
  void stop();
  bool is_stopped() const { return is_stopped_; }

 private:
  friend class Waking;
  std::mutex mutex_;
  std::atomic<bool> is_stopped_ = false;
  const std::function<void()>* wake_ = nullptr;  // called by stop(); guarded by mutex_
};

inline bool is_stopped(const Stop* stop) { return stop != nullptr && stop->is_stopped(); }

// While this object exists, stop() calls `wake`, under a separate lock, so that waiting threads check again. Has no
// effect if `stop` is nullptr.
class Waking {
 public:
  Waking(Stop* stop, std::function<void()> wake);
  ~Waking();
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;

 private:
  Stop* const stop_;
  const std::function<void()> wake_;
};

}  // namespace feedline::cache
