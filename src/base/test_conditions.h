// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conditions that tests and benchmarks force on this process: slow storage, one way of reading, and so on. No user sets
// them. feedline.testing.force() sets them in Python.

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
  // Loaders with num_workers = 0 that are created afterwards use another number of threads at every batch.
  bool random_threads = false;
  std::string machine_root;             // folder with the /proc and /sys that device code reads; empty: the machine's
  std::uint64_t upload_part_bytes = 0;  // of uploads that begin afterwards; 0: the usual size
  std::uint64_t block_cache_bytes = 0;  // of tables that are opened afterwards; 0: the usual size
};

// Not thread-safe: change them while no dataset is opened and no loader is created.
TestConditions& test_conditions();

}  // namespace feedline::base
