// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records a timeline of the stages that each thread works on; Loader::stats() contains only the total of each stage.
// Every thread stores its latest spans in its own ring buffer, so memory use does not grow with recording time.
//
// A process can have one recording at a time, which covers all its loaders. The functions are thread-safe. After
// fork(), a child records nothing until it calls start_spans().

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace feedline {

struct Span {
  std::uint64_t begin_ns = 0;  // of CLOCK_MONOTONIC
  std::uint64_t end_ns = 0;
  std::uint64_t item = 0;    // index of the sample in its dataset; for the consumer, of the batch in its epoch
  std::uint32_t thread = 0;  // kernel thread ID
  std::uint32_t stage = 0;   // index in span_stages()
};

struct SpanRecording {
  std::vector<Span> spans;    // by thread, then by end time
  std::uint64_t dropped = 0;  // number of older spans that were overwritten
};

// The names of the stages: "storage", "decode" and others.
std::vector<std::string_view> span_stages();
// Discards earlier spans and starts recording. The buffer of each thread has `spans_per_thread` spans of 32 bytes, at
// least one.
void start_spans(std::size_t spans_per_thread);
// Returns the spans recorded since start_spans() or the last take_spans(). Recording continues.
SpanRecording take_spans();
void stop_spans();

}  // namespace feedline
