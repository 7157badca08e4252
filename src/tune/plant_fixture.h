// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: simulates a loader and a training loop. All threads together make one batch after another, at most `depth`
// batches ahead of the loop, as src/pipeline does. Simulating an hour takes milliseconds.

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "tune/controller.h"
#include "tune/interval.h"

namespace feedline::tune {

struct Plant {
  // rate: the batches per second of `threads` threads at time t. own_s: the seconds per step of the loop without
  // waiting for data.
  std::function<double(int threads, double t)> rate;
  std::function<double(int threads, double t)> own_s = [](int, double) { return 1e-5; };
  double thread_cpus = 1;   // CPUs used by a working thread
  double reading = 0.1;     // share of a thread's work
  double loop_cpus = 0.05;  // used by the loop while it does not wait
  double noise = 0;         // of both, relative, per batch
  double unsteady = 0;      // of both, relative, for 3 s at a time
  Bounds bounds{{1, 2}, {8, 2}, 8};
  Settings first{8, 2};
};

struct Trajectory {
  struct Taken {
    double t;
    double waited_s;
    int threads;
  };
  std::vector<Taken> batches;
  std::vector<std::pair<double, Change>> changes;

  // Returns the batches per second from `begin` to the last batch.
  double rate(double begin) const {
    const auto first = from(begin);
    return static_cast<double>(batches.end() - first - 1) / (batches.back().t - first->t);
  }
  double mean_threads(double begin) const {
    double sum = 0;
    for (auto it = from(begin) + 1; it < batches.end(); ++it) sum += it->threads * (it->t - (it - 1)->t);
    return sum / (batches.back().t - from(begin)->t);
  }
  int changes_between(double begin, double end) const {
    return static_cast<int>(std::ranges::count_if(
        changes, [&](const auto& change) { return begin <= change.first && change.first < end; }));
  }

 private:
  std::vector<Taken>::const_iterator from(double begin) const {
    return std::ranges::lower_bound(batches, begin, {}, &Taken::t);
  }
};

// controller: nullptr keeps the initial settings.
inline Trajectory run(const Plant& plant, double seconds, Controller* controller, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto jitter = [&](double by) { return std::exp(by * normal(random) - by * by / 2); };
  constexpr double kSteady = 3;
  Settings settings = controller != nullptr ? controller->settings() : plant.first;
  Trajectory trajectory;
  IntervalMeter meter;
  Interval counters, begun;  // cumulative, and at the start of the interval
  std::vector<double> taken;
  double t = 0, made = 0, slow_until = 0, loader_now = 1, loop_now = 1;
  while (t < seconds) {
    if (t >= slow_until && plant.unsteady > 0) {
      loader_now = jitter(plant.unsteady), loop_now = jitter(plant.unsteady);
      slow_until = t + kSteady;
    }
    const auto ahead = static_cast<std::size_t>(settings.depth);
    const double room = taken.size() < ahead ? 0 : taken[taken.size() - ahead];
    const double start = std::max(made, room);
    const double work = loader_now * jitter(plant.noise) / plant.rate(settings.threads, t);
    counters.idle_s += (start - made) * settings.threads;
    counters.reading_s += work * settings.threads * plant.reading;
    counters.workers_cpu_s += work * settings.threads * plant.thread_cpus;
    made = start + work;
    const double own = loop_now * jitter(plant.noise) * plant.own_s(settings.threads, t);
    counters.process_cpu_s += own * plant.loop_cpus + work * settings.threads * plant.thread_cpus;
    const double asked = t + own;
    t = std::max(asked, made);
    taken.push_back(t);
    trajectory.batches.push_back({t, t - asked, settings.threads});
    if (controller == nullptr) continue;
    const auto state =
        meter.delivered(static_cast<std::uint64_t>(t * 1e9), static_cast<std::uint64_t>((t - asked) * 1e9));
    if (state == IntervalMeter::Taken::kGoesOn) continue;
    if (state == IntervalMeter::Taken::kFull) {
      Interval interval = meter.interval();
      interval.idle_s = counters.idle_s - begun.idle_s;
      interval.reading_s = counters.reading_s - begun.reading_s;
      interval.workers_cpu_s = counters.workers_cpu_s - begun.workers_cpu_s;
      interval.process_cpu_s = counters.process_cpu_s - begun.process_cpu_s;
      if (const auto change = controller->step(interval)) {
        trajectory.changes.emplace_back(t, *change);
        settings = controller->settings();
      }
    }
    begun = counters;
  }
  return trajectory;
}

// The rate of the best constant number of threads, and the smallest number of threads that reaches 97 % of this rate.
struct Best {
  double rate = 0;
  int threads = 1;
};
inline Best best_fixed(Plant plant, double begin, double end) {
  std::vector<double> rates;
  for (int threads = plant.bounds.least.threads; threads <= plant.bounds.most.threads; ++threads) {
    plant.first = {threads, plant.bounds.most.depth};
    rates.push_back(run(plant, end, nullptr).rate(begin));
  }
  Best best{std::ranges::max(rates)};
  const auto enough = std::ranges::find_if(rates, [&](double rate) { return rate >= 0.97 * best.rate; });
  best.threads = plant.bounds.least.threads + static_cast<int>(enough - rates.begin());
  return best;
}

}  // namespace feedline::tune
