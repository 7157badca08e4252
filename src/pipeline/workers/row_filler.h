// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fills rows of a batch with their samples, or with substitutes for bad samples if the policy requires it.
//
// Each thread has its own filler, which contains scratch memory and takes no lock. The filler writes only the rows of
// the given ticket. Changes to the epoch's state are returned, and the caller records them.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/epoch/bad_sample_policy.h"
#include "pipeline/epoch/slot.h"
#include "pipeline/sample/sample_loader.h"

namespace feedline::pipeline {

class BatchMix;
class ClipReader;
class ReadAhead;

class RowFiller {
 public:
  // policy, counters, ahead and mix must outlive this object. counters: the thread's counters. ahead: the read-ahead,
  // or nullptr. most_bytes: the maximum size of a stored sample. watch: tracks the thread's calls to the recipe's
  // function, or nullptr. mix: checks that rows can be mixed, or nullptr.
  // decoders, clips: as for SampleLoader.
  RowFiller(std::shared_ptr<const Recipe> recipe, const BadSamplePolicy& policy, std::uint64_t seed,
            telemetry::ThreadCounters* counters, ReadAhead* ahead,
            std::uint64_t most_bytes = memory::usual_sample_limit(),
            const std::shared_ptr<FunctionWatch>& watch = nullptr, const BatchMix* mix = nullptr,
            const std::shared_ptr<VideoDecoders>& decoders = nullptr, ClipReader* clips = nullptr);

  // A row that was not filled with its own sample.
  struct Noted {
    std::uint64_t row = 0;
    Outcome outcome;
  };
  // Assigns and fills the rows of a ticket of this epoch. at_row: receives the current row, for observers. Returns
  // arguments for Epoch::note() in row order; the caller must pass them to that function before reporting the rows as
  // finished. The result is valid until the next call.
  std::span<Noted> fill(const Ticket& ticket, std::uint64_t epoch, std::atomic<std::uint64_t>& at_row);

  // Returns the maximum number of rows in a ticket: the rows that the format fills at once, or two images if there are
  // enough rows for every thread, because JPEGs are decoded in pairs.
  static std::uint64_t grain(const Recipe& recipe, std::uint64_t most_rows, int threads);

 private:
  bool fill_all(const Ticket& ticket);
  void fill_each(const Ticket& ticket, std::uint64_t epoch, std::atomic<std::uint64_t>& at_row);
  SampleLoader::Job job_of(const Ticket& ticket, std::uint64_t row, std::uint64_t epoch,
                           std::vector<memory::Row>& rows);
  Result<void> checked(const SampleLoader::Job& job, Result<void> loaded) const;
  void settle(SampleLoader::Job job, std::uint64_t row, Result<void> loaded);

  const std::shared_ptr<const Recipe> recipe_;
  const BadSamplePolicy& policy_;
  const std::uint64_t seed_;
  const BatchMix* const mix_;
  SampleLoader loader_, second_;  // the second is for another sample in turn
  std::vector<memory::Row> rows_, second_rows_;
  std::vector<ArrayView> views_;  // of the first of many rows
  std::vector<Noted> noted_;
};

}  // namespace feedline::pipeline
