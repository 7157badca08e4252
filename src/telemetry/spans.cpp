// SPDX-License-Identifier: Apache-2.0
#include "telemetry/spans.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace feedline {
namespace {

// The latest spans of a thread. The mutex is locked by that thread, and occasionally by a reader.
struct Ring {
  std::mutex mutex;
  std::vector<Span> spans;  // grows to its capacity, then wraps
  std::size_t capacity = 0;
  std::size_t oldest = 0;  // position of the next span once it is full
  std::uint64_t dropped = 0;
  std::uint64_t recording = 0;  // the recording that it belongs to
};

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Ring>> rings;  // including those of finished threads
  std::size_t capacity = 1;
  std::atomic<std::uint64_t> recording = 0;  // read without the mutex, so that take_spans() blocks no thread
};

// Never destroyed, because threads may record spans while the program exits.
Registry* registry = new Registry;

// At the fork, another thread of the parent may have held a mutex, which would never be unlocked in the child.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  const std::uint64_t last = registry->recording;
  telemetry::internal::recording.store(false, std::memory_order_relaxed);
  registry = new Registry;
  registry->recording = last + 1;  // marks this thread's ring as the parent's
});

std::shared_ptr<Ring> join_recording() {
  auto ring = std::make_shared<Ring>();
  const std::lock_guard lock(registry->mutex);
  ring->capacity = registry->capacity;
  ring->recording = registry->recording;
  registry->rings.push_back(ring);
  return ring;
}

// Moves a ring's spans to the end of `recording`.
void empty_into(Ring& ring, SpanRecording& recording) {
  const std::lock_guard lock(ring.mutex);
  const auto oldest = ring.spans.begin() + static_cast<std::ptrdiff_t>(ring.oldest);
  recording.spans.insert(recording.spans.end(), oldest, ring.spans.end());
  recording.spans.insert(recording.spans.end(), ring.spans.begin(), oldest);
  recording.dropped += ring.dropped;
  ring.spans.clear();
  ring.oldest = 0;
  ring.dropped = 0;
}

}  // namespace

namespace telemetry::internal {

std::atomic<bool> recording = false;

void record(Span span) {
  thread_local const auto thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  thread_local std::shared_ptr<Ring> ring;
  if (!ring || ring->recording != registry->recording.load(std::memory_order_relaxed)) ring = join_recording();
  span.thread = thread;
  const std::lock_guard lock(ring->mutex);
  if (ring->spans.size() < ring->capacity) {
    ring->spans.push_back(span);
    return;
  }
  ring->spans[ring->oldest] = span;
  ring->oldest = (ring->oldest + 1) % ring->capacity;
  ++ring->dropped;
}

}  // namespace telemetry::internal

std::vector<std::string_view> span_stages() {
  std::vector<std::string_view> names;
  for (int i = 0; i < telemetry::kStages; ++i) names.push_back(telemetry::name_of(static_cast<telemetry::Stage>(i)));
  return names;
}

void start_spans(std::size_t spans_per_thread) {
  const std::lock_guard lock(registry->mutex);
  registry->rings.clear();
  registry->capacity = std::max<std::size_t>(1, spans_per_thread);
  ++registry->recording;
  telemetry::internal::recording.store(true, std::memory_order_relaxed);
}

void stop_spans() { telemetry::internal::recording.store(false, std::memory_order_relaxed); }

SpanRecording take_spans() {
  SpanRecording result;
  const std::lock_guard lock(registry->mutex);
  for (const auto& ring : registry->rings) empty_into(*ring, result);
  return result;
}

}  // namespace feedline
