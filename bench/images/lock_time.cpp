// SPDX-License-Identifier: Apache-2.0

// Measures CPU time per image under the pipeline's lock, and the longest hold, for a number of threads. Input of
// bench/scaling.py. Time is the thread's CPU time minus the cost of reading the clock, so that time in which the thread
// is preempted does not count, and there may be more threads than CPUs.
//
// usage: lock_time THREADS [BATCHES=60] [adapts]; prints a line of JSON. adapts: with a controller, as with
// num_workers="auto".
//
// It interposes pthread's functions and measures the mutex with which a worker waits on a condition variable, so it
// works with any version of the pipeline.

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/cpu_clock.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"

namespace {

using feedline::base::thread_cpu_ns;

std::atomic<pthread_mutex_t*> watched{nullptr};
std::atomic<bool> counts{false};
std::atomic<std::uint64_t> held_ns{0}, visits{0}, longest_ns{0};
thread_local std::uint64_t began_ns = 0;
std::uint64_t clock_ns = 0;  // cost of reading the clock

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void begin(pthread_mutex_t* mutex) {
  if (mutex == watched.load(std::memory_order_relaxed) && counts) began_ns = thread_cpu_ns();
}

void end(pthread_mutex_t* mutex) {
  if (mutex != watched.load(std::memory_order_relaxed) || began_ns == 0) return;
  const std::uint64_t all_ns = thread_cpu_ns() - began_ns;
  began_ns = 0;
  const std::uint64_t ns = all_ns - std::min(all_ns, clock_ns);
  held_ns += ns;
  ++visits;
  std::uint64_t longest = longest_ns;
  while (ns > longest && !longest_ns.compare_exchange_weak(longest, ns)) continue;
}

bool is_worker() {
  char name[16] = {};
  return ::pthread_getname_np(::pthread_self(), name, sizeof name) == 0 && std::strncmp(name, "feedline-", 9) == 0;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto lock = real<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
  const int result = lock(mutex);
  begin(mutex);
  return result;
}
__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static const auto unlock = real<int (*)(pthread_mutex_t*)>("pthread_mutex_unlock");
  end(mutex);
  return unlock(mutex);
}
__attribute__((visibility("default"))) int pthread_cond_wait(pthread_cond_t* changed, pthread_mutex_t* mutex) {
  static const auto wait = real<int (*)(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  if (watched == nullptr && is_worker()) watched = mutex;
  end(mutex);
  const int result = wait(changed, mutex);
  begin(mutex);
  return result;
}
__attribute__((visibility("default"))) int pthread_cond_clockwait(pthread_cond_t* changed, pthread_mutex_t* mutex,
                                                                  clockid_t clock, const timespec* until) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const auto wait = real<Wait>("pthread_cond_clockwait");
  end(mutex);
  const int result = wait(changed, mutex, clock, until);
  begin(mutex);
  return result;
}
}

int main(int argc, char** argv) {
  namespace fp = feedline::pipeline;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const int batches = argc > 2 ? std::atoi(argv[2]) : 60;
  if (threads < 1 || batches < 1) {
    std::fprintf(stderr, "usage: lock_time THREADS [BATCHES=60] [adapts]\n");
    return 2;
  }
  std::vector<std::uint64_t> costs_ns;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t then = thread_cpu_ns();
    costs_ns.push_back(thread_cpu_ns() - then);
  }
  std::ranges::sort(costs_ns);
  clock_ns = costs_ns[costs_ns.size() / 2];
  // ImageNet crops in float32, from images that need no decoding, for maximum contention
  constexpr std::uint64_t kRows = 64;
  constexpr int kWarm = 6;
  const std::uint64_t samples = kRows * static_cast<std::uint64_t>(batches + kWarm + 8);
  const auto recipe =
      fp::make_recipe({"made", std::make_shared<fp::FakeFormat>(samples)},
                      {feedline::op::Resize{{224, 224}}, feedline::op::Normalize{{0.5, 0.5, 0.5}, {0.2, 0.2, 0.2}}},
                      std::nullopt, feedline::Layout::kNchw);
  auto plan = fp::plan_pipeline(**recipe, {.batch_size = kRows, .num_workers = threads});
  plan->adapts = argc > 3 && std::strcmp(argv[3], "adapts") == 0;
  fp::Pipeline pipeline(*recipe, *plan, fp::usual_device());
  if (!pipeline.begin({}, false)) return 3;
  feedline::Batch batch;  // released when the next batch arrives, as in a usual loop
  for (int i = 0; i < kWarm + batches; ++i) {
    if (i == kWarm) counts = true;
    const auto polled = pipeline.poll(std::chrono::seconds(200), batch);
    if (!polled || *polled != feedline::Loader::Polled::kBatch) return 3;
  }
  counts = false;
  const double images = static_cast<double>(kRows) * batches;
  std::printf(
      "{\"threads\": %d, \"adapts\": %s, \"visits_per_batch\": %.1f, \"us_per_image\": %.4f, \"us_per_visit\": %.3f, "
      "\"longest_us\": %.1f}\n",
      threads, plan->adapts ? "true" : "false", static_cast<double>(visits) / batches,
      static_cast<double>(held_ns) * 1e-3 / images,
      static_cast<double>(held_ns) * 1e-3 / static_cast<double>(std::max<std::uint64_t>(visits, 1)),
      static_cast<double>(longest_ns) * 1e-3);
  return 0;
}
