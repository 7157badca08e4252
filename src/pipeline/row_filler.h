// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fills rows of a batch with their samples, and with another one where a sample is bad and the policy says so.
//
// One per thread, which owns it with its scratch memory; it takes no lock. It writes the rows of the ticket that it is
// given and nothing else of the slot: what the epoch must know of a row is handed back, for the caller to note.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/bad_sample_policy.h"
#include "pipeline/sample_loader.h"
#include "pipeline/slot.h"

namespace feedline::pipeline {

class BatchMix;

class RowFiller {
 public:
  // policy, counters and ahead outlive it. counters: of this thread. ahead: nullptr, or what reads for it.
  // most_bytes: of a stored sample. watch: of the thread's calls of the recipe's function, or nullptr. mix: nullptr, or
  // what the batch's rows must be fit for; outlives it.
  RowFiller(std::shared_ptr<const Recipe> recipe, const BadSamplePolicy& policy, std::uint64_t seed,
            telemetry::ThreadCounters* counters, ReadAhead* ahead,
            std::uint64_t most_bytes = memory::usual_sample_limit(),
            const std::shared_ptr<FunctionWatch>& watch = nullptr, const BatchMix* mix = nullptr);

  // A row that has not its own sample.
  struct Noted {
    std::uint64_t row = 0;
    Outcome outcome;
  };
  // Places and fills the rows of a ticket of this epoch. at_row: the row that it is at, for whoever watches.
  // Gives what to tell Epoch::note() before the rows are finished, in row order; valid until the next call.
  std::span<Noted> fill(const Ticket& ticket, std::uint64_t epoch, std::atomic<std::uint64_t>& at_row);

  // Most rows of a ticket: the format's grain, or two images where a batch has enough of them that no thread is left
  // without, because JPEGs are decoded two by two.
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
  SampleLoader loader_, second_;  // the second for another sample in turn with it
  std::vector<memory::Row> rows_, second_rows_;
  std::vector<ArrayView> views_;  // of the first of many rows
  std::vector<Noted> noted_;
};

}  // namespace feedline::pipeline
