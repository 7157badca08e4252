// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conditions that tests and benchmarks force on this process, such as slow storage or a particular way of reading. They
// are not user options; Python tests set them with feedline.testing.force().

#include <chrono>
#include <cstdint>
#include <string>

namespace feedline::base {

enum class ReadAheadMode : std::uint8_t {
  kAuto,  // if the storage is slow; immediately if it is remote
  kNever,
  kAlways,   // from the first sample on
  kThreads,  // like kAlways, and without io_uring
};

struct TestConditions {
  std::chrono::microseconds read_latency{0};        // added to each read of sources that are opened afterwards
  ReadAheadMode read_ahead = ReadAheadMode::kAuto;  // of loaders that are created afterwards
  // If true, loaders with num_workers = 0 that are created afterwards use a different number of threads for every
  // batch.
  bool random_threads = false;
  std::string machine_root;             // folder with the /proc and /sys that device code reads; empty: the machine's
  std::uint64_t upload_part_bytes = 0;  // of uploads that begin afterwards; 0: the usual size
  std::uint64_t block_cache_bytes = 0;  // of tables that are opened afterwards; 0: the usual size
};

// Not thread-safe: do not change the conditions while a dataset is being opened or a loader is being created.
TestConditions& test_conditions();

}  // namespace feedline::base
