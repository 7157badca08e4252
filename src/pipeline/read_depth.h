// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace feedline::pipeline {

// How many reads to keep under way, from what was measured. By Little's law a storage that takes L per read keeps up
// with threads that take a sample every 1/r when r * L reads are under way. Twice that is asked for: half of it hides
// that latencies differ, and while the threads still wait, r is what the storage gave, so that the depth doubles until
// they wait no more. A storage that is at its limit answers more reads later, not faster; L is therefore at most twice
// the least latency seen, which more reads do not raise, and the depth ends at four times what that storage works on.
// Whether the storage has become slower instead is tried now and then: a depth half as large again is kept if the
// rate rises with it. Not thread-safe.
//
// A rate takes two latencies, and doubles from there, while threads far from a storage wait for nearly every read. So
// kWithAnswers begins as TCP's window does: the depth grows by one with each read that comes, within twice the least
// latency, until the threads wait no more. A link that is narrow gives answers as slowly, so that the first samples
// share it with few others.
class ReadDepth {
 public:
  enum class Start : std::uint8_t { kAtLeast, kWithAnswers };
  ReadDepth(std::uint64_t least, std::uint64_t most, Start start = Start::kAtLeast);

  void completed(std::uint64_t latency_ns);       // of a read that had to wait
  void taken(std::uint64_t now_ns, bool waited);  // a thread took a sample; it was not there yet
  std::uint64_t reads() const { return reads_; }
  std::uint64_t latency_ns() const { return latency_ns_; }  // as last measured; 0: not yet

 private:
  void decide(std::uint64_t period_ns);
  void try_more(double rate);

  const std::uint64_t least_;
  const std::uint64_t most_;
  std::uint64_t reads_;
  bool grows_;                     // with each read that comes
  bool waited_ = false;            // a thread did, in this period
  std::uint64_t shortest_ns_ = 0;  // latency of all
  std::uint64_t latency_ns_ = 0;
  std::uint64_t lowest_ns_ = 0;         // latency that is believed; 0: not yet
  std::uint64_t lowest_before_ns_ = 0;  // the trial that runs; 0: none does
  double rate_before_ = 0;              // likewise
  int periods_ = 0;                     // since the last trial
  std::uint64_t period_began_ns_ = 0;   // 0: not yet
  std::uint64_t taken_ = 0, completed_ = 0, latency_sum_ns_ = 0, lowest_in_period_ns_ = 0;
};

}  // namespace feedline::pipeline
