// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/epoch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "pipeline/epoch/epoch_fixture.h"

namespace feedline::pipeline {
namespace {

std::shared_ptr<const plan::Order> order_of(std::uint64_t size) {
  plan::OrderConfig config;
  config.size = size;
  config.seed = 4;
  config.shuffle = true;
  return plan::make_order(config, 1);
}

// Runs an epoch without threads: rows finish in a random order drawn from `schedule`, and samples in `bad` fail.
class EpochRun {
 public:
  std::uint64_t size = 50;
  std::uint64_t batch_size = 8;
  bool drop_last = false;
  bool in_order = true;
  OnError on_error = OnError::kSkip;
  std::size_t slots = 3;
  unsigned lag = 2;  // larger values keep more rows in progress
  std::set<std::uint64_t> bad;
  std::uint64_t position = 0, left_out = 0;
  std::vector<Positions> delivered;
  bool prepares = false;  // final slots are made ready later, in any order, and must not change after becoming final

  struct Outcome {
    std::vector<std::vector<std::uint64_t>> batches;
    std::vector<std::uint64_t> batch_indices;
    std::vector<std::uint64_t> logged;
    struct State {
      std::uint64_t position, left_out;
      std::vector<Positions> delivered;
    };
    std::vector<State> states;  // after each delivery
    int overtaken = 0;          // deliveries of an early batch
  };

  // Returns the same run, resumed from the state.
  EpochRun from(const Outcome::State& state) const {
    EpochRun rest = *this;
    rest.position = state.position;
    rest.left_out = state.left_out;
    rest.delivered = state.delivered;
    return rest;
  }

  Outcome run(unsigned schedule_seed) const {
    const BadSamplePolicy policy(on_error, 0);
    Epoch::Config config;
    config.epoch = 1;
    config.order = order_of(size);
    config.plan = {.batch_rows = batch_size,
                   .drop_last = drop_last,
                   .begin = position,
                   .delivered = delivered,
                   .left_out = left_out};
    config.in_order = in_order;
    config.prepares = prepares;
    Epoch epoch(config, policy);
    std::mt19937 schedule(schedule_seed);
    std::vector<Ticket> working;
    std::vector<std::shared_ptr<Slot>> finals;
    std::map<std::uint64_t, std::vector<std::uint64_t>> samples_when_final;  // by batch
    Outcome outcome;
    while (!epoch.over()) {
      if (epoch.can_open() && epoch.open_slots() < slots && schedule() % 2 == 0) open_batch(epoch);
      if (working.empty() || schedule() % 2 == 0) {
        if (auto ticket = epoch.take_ticket()) working.push_back(std::move(*ticket));
      }
      if (!working.empty() && schedule() % lag == 0) {
        const std::size_t pick = schedule() % working.size();
        const Ticket ticket = working[pick];
        ticket.assign_samples();
        working.erase(working.begin() + static_cast<std::ptrdiff_t>(pick));
        pipeline::Outcome row;
        row.sample = ticket.sample();
        if (bad.contains(ticket.sample())) row.failed = one_bad(ticket.row, row.sample);
        epoch.note(*ticket.slot, ticket.row, std::move(row));
        if (ticket.slot->tickets.finish(1)) epoch.settle(*ticket.slot);
      }
      for (auto slot = epoch.take_final(); slot; slot = std::exchange(slot->prepared->next_final, nullptr)) {
        EXPECT_TRUE(prepares);
        samples_when_final[slot->batch].assign(slot->samples.begin(),
                                               slot->samples.begin() + static_cast<std::ptrdiff_t>(slot->rows));
        finals.push_back(slot);
      }
      if (!finals.empty() && schedule() % 3 == 0) {
        const auto pick = finals.begin() + static_cast<std::ptrdiff_t>(schedule() % finals.size());
        epoch.note_ready(**pick);
        finals.erase(pick);
      }
      if (schedule() % 4 != 0) continue;
      const auto slot = epoch.take_ready();
      if (!slot) continue;
      EXPECT_EQ(std::ranges::find(finals, slot), finals.end()) << "it is not ready";
      if (prepares && slot->rows > 0) {
        EXPECT_EQ(slot->samples, samples_when_final[slot->batch]) << "it was not final";
      }
      if (!epoch.delivered().empty()) ++outcome.overtaken;
      for (const BadEntry& entry : slot->bad) outcome.logged.push_back(entry.sample.sample);
      outcome.states.push_back({epoch.position(), epoch.left_out(), epoch.delivered()});
      if (slot->rows == 0) continue;
      EXPECT_TRUE(slot->failures.empty());
      outcome.batches.push_back(slot->samples);
      outcome.batch_indices.push_back(epoch.index_of(slot->batch));
    }
    return outcome;
  }
};

std::vector<std::uint64_t> flat(const std::vector<std::vector<std::uint64_t>>& batches) {
  std::vector<std::uint64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  std::ranges::sort(all);
  return all;
}

TEST(Epoch, DeliversThePlanInOrder) {
  EpochRun run;
  const auto outcome = run.run(1);
  const auto order = order_of(50);
  ASSERT_EQ(outcome.batches.size(), 7u);
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(outcome.batches[i / 8][i % 8], order->at(i).sample);
}

class EpochSkips : public testing::TestWithParam<int> {};

TEST_P(EpochSkips, SkipLosesNoGoodSampleAndKeepsBatchesFull) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  EpochRun run;
  run.size = 1 + random() % 90;
  run.batch_size = 1 + random() % 12;
  run.slots = 1 + random() % 5;
  run.in_order = random() % 2 == 0;
  run.prepares = GetParam() % 2 == 1;
  const unsigned percent = random() % 3 == 0 ? 60 : 15;
  for (std::uint64_t i = 0; i < run.size; ++i)
    if (random() % 100 < percent) run.bad.insert(i);
  const auto outcome = run.run(static_cast<unsigned>(random()));
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < run.size; ++i)
    if (!run.bad.contains(i)) expected.push_back(i);
  EXPECT_EQ(flat(outcome.batches), expected);
  std::vector<std::uint64_t> logged = outcome.logged;
  std::ranges::sort(logged);
  EXPECT_EQ(logged, std::vector<std::uint64_t>(run.bad.begin(), run.bad.end()));
  int partial = 0;
  for (const auto& batch : outcome.batches) partial += batch.size() < run.batch_size;
  EXPECT_LE(partial, 1);
}

TEST_P(EpochSkips, OutcomeDoesNotDependOnWhoFinishesWhen) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  EpochRun run;
  run.size = 20 + random() % 60;
  run.drop_last = random() % 2 == 0;
  for (std::uint64_t i = 0; i < run.size; ++i)
    if (random() % 5 == 0) run.bad.insert(i);
  run.slots = 1;
  const auto first = run.run(1);
  for (unsigned schedule = 2; schedule < 8; ++schedule) {
    run.slots = 1 + schedule % 4;
    run.prepares = schedule % 2 == 1;
    const auto other = run.run(schedule);
    EXPECT_EQ(first.batches, other.batches);
    EXPECT_EQ(first.logged, other.logged);
  }
}

TEST_P(EpochSkips, ResumesAtEveryBatch) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  EpochRun run;
  run.size = 20 + random() % 60;
  run.in_order = random() % 2 == 0;
  run.prepares = GetParam() % 2 == 1;
  for (std::uint64_t i = 0; i < run.size; ++i)
    if (random() % 6 == 0) run.bad.insert(i);
  const auto whole = run.run(3);
  std::vector<std::vector<std::uint64_t>> before;
  for (std::size_t at = 0; at < whole.batches.size(); ++at) {
    before.push_back(whole.batches[at]);
    const EpochRun rest = run.from(whole.states[at]);
    auto together = before;
    const auto resumed = rest.run(static_cast<unsigned>(at) + 11);
    together.insert(together.end(), resumed.batches.begin(), resumed.batches.end());
    EXPECT_EQ(flat(together), flat(whole.batches)) << "resumed after " << at;
    if (run.in_order) {
      EXPECT_EQ(together, whole.batches);
      std::vector<std::uint64_t> indices(whole.batch_indices.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                         whole.batch_indices.end());
      EXPECT_EQ(resumed.batch_indices, indices);
    }
  }
}

// Batches that were delivered early are neither lost nor delivered twice, whatever the batch size after resuming.
TEST(Epoch, ResumesBehindBatchesThatCameEarly) {
  EpochRun run;
  run.size = 300;
  run.slots = 6;
  run.lag = 5;
  run.in_order = false;
  run.bad = {7, 70};  // whose refills can only reach the end
  const auto whole = run.run(3);
  EXPECT_GT(whole.overtaken, 3) << "no batch was early: this test proved nothing";
  for (std::size_t at = 0; at < whole.batches.size(); ++at) {
    for (const std::uint64_t batch_size : {8u, 5u}) {
      EpochRun rest = run.from(whole.states[at]);
      rest.batch_size = batch_size;
      std::vector<std::vector<std::uint64_t>> together(whole.batches.begin(),
                                                       whole.batches.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      const auto resumed = rest.run(static_cast<unsigned>(at) + 11);
      together.insert(together.end(), resumed.batches.begin(), resumed.batches.end());
      EXPECT_EQ(flat(together), flat(whole.batches)) << "resumed after " << at;
    }
  }
}

// With a different batch size after an interruption, every good sample is still delivered once.
TEST_P(EpochSkips, GoesOnWithAnotherBatchSize) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  EpochRun run;
  run.size = 20 + random() % 60;
  run.in_order = random() % 2 == 0;
  for (std::uint64_t i = 0; i < run.size; ++i)
    if (random() % 6 == 0) run.bad.insert(i);
  const auto whole = run.run(3);
  std::vector<std::vector<std::uint64_t>> before;
  for (std::size_t at = 0; at < whole.batches.size(); ++at) {
    before.push_back(whole.batches[at]);
    EpochRun rest = run.from(whole.states[at]);
    rest.batch_size = 1 + random() % 12;
    auto together = before;
    const auto resumed = rest.run(static_cast<unsigned>(at) + 11);
    together.insert(together.end(), resumed.batches.begin(), resumed.batches.end());
    EXPECT_EQ(flat(together), flat(whole.batches)) << "resumed after " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, EpochSkips, testing::Range(0, 60));

TEST(Epoch, DropLastRefillsFromTheSamplesThatItWouldDrop) {
  EpochRun run;
  run.size = 20;
  run.batch_size = 8;
  run.drop_last = true;
  const auto order = order_of(20);
  run.bad = {order->at(1).sample, order->at(9).sample};
  const auto outcome = run.run(1);
  ASSERT_EQ(outcome.batches.size(), 2u);
  EXPECT_EQ(outcome.batches[0][1], order->at(19).sample);
  EXPECT_EQ(outcome.batches[1][1], order->at(18).sample);
}

TEST(Epoch, RaiseKeepsTheErrorsOfABatchInRowOrder) {
  const BadSamplePolicy policy(OnError::kRaise, 0);
  Epoch::Config config;
  config.order = plan::make_order({.size = 4}, 0);
  config.plan = {.batch_rows = 4};
  Epoch epoch(config, policy);
  open_batch(epoch);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(*epoch.take_ticket());
  for (const int row : {3, 1, 0, 2}) {
    Outcome outcome;
    outcome.sample = static_cast<std::uint64_t>(row);
    if (row % 2 == 1) outcome.failed = one_bad(outcome.sample, outcome.sample, "row " + std::to_string(row));
    Slot& slot = *tickets[static_cast<std::size_t>(row)].slot;
    epoch.note(slot, static_cast<std::uint64_t>(row), std::move(outcome));
    if (slot.tickets.finish(1)) epoch.settle(slot);
  }
  const auto slot = epoch.take_ready();
  ASSERT_TRUE(slot);
  ASSERT_EQ(slot->failures.size(), 2u);
  EXPECT_EQ(slot->failures.front().sample.error.what, "row 1");
}

}  // namespace
}  // namespace feedline::pipeline
