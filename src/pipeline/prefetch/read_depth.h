// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace feedline::pipeline {

// Computes from measurements how many reads to keep in flight. By Little's law, storage with latency L keeps up with
// threads that take r samples per second if r * L reads are in flight. The target is 2 * r * L reads, which absorbs
// variation in latency. While the threads still wait, r is the storage's rate, so the depth doubles until they no
// longer wait. Additional reads from saturated storage only take longer; the throughput does not increase. L is
// therefore limited to twice the lowest measured latency, which additional reads do not raise, so the depth ends at
// four times the storage's parallelism. Occasional trials detect storage that has become slower: each tries 1.5 times
// the depth, which is used from then on if it increases the rate. Not thread-safe.
//
// Measuring a rate takes two latencies, and the depth doubles after each measurement; until then, threads that use
// remote storage wait for nearly every read. kWithAnswers therefore begins like TCP's slow start: the depth grows by
// one with each completed read that took less than twice the lowest latency, until the threads no longer wait. On a
// narrow link, reads complete slowly, so the depth grows slowly and the first samples share the link with few others.
class ReadDepth {
 public:
  enum class Start : std::uint8_t { kAtLeast, kWithAnswers };
  ReadDepth(std::uint64_t least, std::uint64_t most, Start start = Start::kAtLeast);

  void completed(std::uint64_t latency_ns);       // latency of a read that had to wait
  void taken(std::uint64_t now_ns, bool waited);  // a thread took a sample; waited: it was not ready yet
  std::uint64_t reads() const { return reads_; }
  std::uint64_t latency_ns() const { return latency_ns_; }  // as last measured; 0 if not yet

 private:
  void decide(std::uint64_t period_ns);
  void try_more(double rate);

  const std::uint64_t least_;
  const std::uint64_t most_;
  std::uint64_t reads_;
  bool grows_;                     // with each completed read
  bool waited_ = false;            // a thread did, in this period
  std::uint64_t shortest_ns_ = 0;  // over all reads
  std::uint64_t latency_ns_ = 0;
  std::uint64_t lowest_ns_ = 0;         // accepted latency; 0 if there is none yet
  std::uint64_t lowest_before_ns_ = 0;  // before the current trial; 0 if there is none
  double rate_before_ = 0;              // before the current trial
  int periods_ = 0;                     // since the last trial
  std::uint64_t period_began_ns_ = 0;   // 0 if not yet
  std::uint64_t taken_ = 0, completed_ = 0, latency_sum_ns_ = 0, lowest_in_period_ns_ = 0;
};

}  // namespace feedline::pipeline
