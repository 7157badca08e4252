// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/row_filler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/format.h"
#include "pipeline/planning/batch_mix.h"
#include "pipeline/prefetch/read_ahead.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kImagesInTurn = 2;

PlanRow plan_row_of(const Ticket& ticket, std::uint64_t row, std::uint64_t epoch) {
  if (ticket.is_refill) return {};
  return {epoch, &ticket.slot->plan, ticket.slot->batch, row, !ticket.slot->plan};
}

}  // namespace

std::uint64_t RowFiller::grain(const Recipe& recipe, std::uint64_t most_rows, int threads) {
  const std::uint64_t at_once = rows_at_once(recipe);
  const bool has_two_for_each = most_rows >= kImagesInTurn * static_cast<std::uint64_t>(threads);
  return SampleLoader::takes_turns(recipe) && at_once == 1 && has_two_for_each ? kImagesInTurn : at_once;
}

RowFiller::RowFiller(std::shared_ptr<const Recipe> recipe, const BadSamplePolicy& policy, std::uint64_t seed,
                     telemetry::ThreadCounters* counters, ReadAhead* ahead, std::uint64_t most_bytes,
                     const std::shared_ptr<FunctionWatch>& watch, const BatchMix* mix,
                     const std::shared_ptr<VideoDecoders>& decoders, ClipReader* clips)
    : recipe_(std::move(recipe)),
      policy_(policy),
      seed_(seed),
      mix_(mix),
      loader_(recipe_, counters, ahead ? ahead->reader() : nullptr, most_bytes, watch, decoders, clips),
      second_(recipe_, counters, ahead ? ahead->reader() : nullptr, most_bytes, watch, decoders, clips) {}

std::span<RowFiller::Noted> RowFiller::fill(const Ticket& ticket, std::uint64_t epoch,
                                            std::atomic<std::uint64_t>& at_row) {
  noted_.clear();
  ticket.assign_samples();
  const bool is_each = ticket.rows == 1 || mix_ != nullptr || rows_at_once(*recipe_) == 1;
  if (is_each || !fill_all(ticket)) fill_each(ticket, epoch, at_row);
  return noted_;
}

// Fills rows of arrays or of numbers in one call. Returns false if one of the rows is bad.
bool RowFiller::fill_all(const Ticket& ticket) {
  const Slot& slot = *ticket.slot;
  slot.layout->row_views(slot.lease->data(), ticket.row, views_);
  return loader_.fill(std::span(slot.samples).subspan(ticket.row, ticket.rows), views_).has_value();
}

// Fills rows one by one, or two rows alternately, so that bad samples can be identified.
void RowFiller::fill_each(const Ticket& ticket, std::uint64_t epoch, std::atomic<std::uint64_t>& at_row) {
  const std::uint64_t end = ticket.row + ticket.rows;
  std::uint64_t row = ticket.row;
  for (; SampleLoader::takes_turns(*recipe_) && row + 1 < end; row += 2) {
    const SampleLoader::Job first = job_of(ticket, row, epoch, rows_);
    const SampleLoader::Job second = job_of(ticket, row + 1, epoch, second_rows_);
    std::array<Result<void>, 2> loaded{loader_.begin(first), {}};
    at_row.store(row + 1, std::memory_order_relaxed);
    loaded[1] = second_.begin(second);
    SampleLoader::finish_in_turn(loader_, first, second_, second, loaded);
    settle(first, row, checked(first, std::move(loaded[0])));
    settle(second, row + 1, checked(second, std::move(loaded[1])));
  }
  for (; row < end; ++row) {
    at_row.store(row, std::memory_order_relaxed);
    const SampleLoader::Job job = job_of(ticket, row, epoch, rows_);
    settle(job, row, checked(job, loader_.load(job)));
  }
}

SampleLoader::Job RowFiller::job_of(const Ticket& ticket, std::uint64_t row, std::uint64_t epoch,
                                    std::vector<memory::Row>& rows) {
  Slot& slot = *ticket.slot;
  slot.rows_at(row, rows);
  return {slot.samples[row], {seed_, epoch, slot.draws[row]}, rows, plan_row_of(ticket, row, epoch)};
}

// Checks that a loaded row can be mixed.
Result<void> RowFiller::checked(const SampleLoader::Job& job, Result<void> loaded) const {
  if (mix_ == nullptr || !loaded) return loaded;
  auto fit = mix_->check(job.rows);
  if (!fit) return std::unexpected(with_location(std::move(fit).error(), *recipe_, job.index));
  return fit;
}

// Records the result of a row, and fills the row with another sample if the policy requires it.
void RowFiller::settle(SampleLoader::Job job, std::uint64_t row, Result<void> loaded) {
  if (loaded) return;
  Noted& noted = noted_.emplace_back(Noted{row, {}});
  Outcome& outcome = noted.outcome;
  outcome.sample = job.index;
  const base::SampleKey asked = job.key;
  // a selection's substitutes are from the selection: others may be samples of a validation set
  std::shared_ptr<const plan::Plan> selected = job.plan_row.plan ? *job.plan_row.plan : nullptr;
  if (selected && selected->order().has_all_samples()) selected = nullptr;
  const std::uint64_t substitutes = selected ? selected->order().size() : recipe_->format->size();
  const auto entry = [&](Error error) {
    return BadEntry{row, {std::move(error), asked.epoch, 0, outcome.sample, policy_.on_error()}};
  };
  for (std::uint32_t attempt = 0; !loaded; ++attempt) {
    const bool ends = !loaded && loaded.error().code == ErrorCode::kCancelled;  // not a sample's error
    const auto next = policy_.on_error() == OnError::kReplace && !ends ? policy_.substitute(asked, substitutes, attempt)
                                                                       : std::nullopt;
    if (!next) {
      outcome.failed.push_back(entry(std::move(loaded).error()));
      return;
    }
    // a bad substitute is logged at its own position in the plan, not here
    if (attempt == 0) outcome.replaced.push_back(entry(std::move(loaded).error()));
    outcome.sample = job.index = job.key.sample = selected ? selected->order().at(*next).sample : *next;
    job.plan_row = {};
    loaded = checked(job, loader_.load(job));
  }
}

}  // namespace feedline::pipeline
