// SPDX-License-Identifier: Apache-2.0
#pragma once

// The input and output of curl_reads and feedline_reads.
//
//   PROGRAM AT_ONCE < READS     one read per line: URL [FIRST LAST], the bytes of a range; without them, the whole
//   object
//
// They print one line of JSON: bytes, seconds, and the CPU time of only this process.

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace feedline::bench {

struct RemoteRead {
  std::string url;
  bool is_range = false;
  std::uint64_t first = 0, last = 0;
};

inline std::vector<RemoteRead> remote_reads(std::istream& lines) {
  std::vector<RemoteRead> reads;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    RemoteRead read;
    if (!(words >> read.url)) continue;
    read.is_range = static_cast<bool>(words >> read.first >> read.last);
    reads.push_back(std::move(read));
  }
  return reads;
}

// Measures time and CPU time from its construction.
class Stopwatch {
 public:
  Stopwatch() : began_(Clock::now()), before_(usage()) {}
  void print(std::uint64_t bytes, std::size_t reads) const {
    const rusage now = usage();
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    std::printf(
        "{\"bytes\": %llu, \"reads\": %zu, \"seconds\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, "
        "\"switches\": %ld}\n",
        static_cast<unsigned long long>(bytes), reads, seconds, between(before_.ru_utime, now.ru_utime),
        between(before_.ru_stime, now.ru_stime), now.ru_nvcsw + now.ru_nivcsw - before_.ru_nvcsw - before_.ru_nivcsw);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static rusage usage() {
    rusage now{};
    ::getrusage(RUSAGE_SELF, &now);
    return now;
  }
  static double between(const timeval& from, const timeval& to) {
    return static_cast<double>(to.tv_sec - from.tv_sec) + static_cast<double>(to.tv_usec - from.tv_usec) * 1e-6;
  }
  const Clock::time_point began_;
  const rusage before_;
};

}  // namespace feedline::bench
