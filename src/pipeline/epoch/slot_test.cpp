// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/slot.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "pipeline/epoch/epoch_fixture.h"

namespace feedline::pipeline {
namespace {

using Samples = std::vector<std::uint64_t>;

Epoch::Config config_of(std::uint64_t size, std::uint64_t batch_size, std::uint64_t grain = 1) {
  plan::OrderConfig order;
  order.size = size;
  Epoch::Config config;
  config.order = plan::make_order(order, 0);
  config.plan = {.batch_rows = batch_size};
  config.grain = grain;
  return config;
}

void fail(Epoch& epoch, const Ticket& ticket) {
  Outcome outcome{ticket.sample(), one_bad(ticket.row, ticket.sample()), {}};
  epoch.note(*ticket.slot, ticket.row, std::move(outcome));
}

TEST(Ticket, PlacesTheRowsThatItHasAndNoOthers) {
  const BadSamplePolicy policy(OnError::kRaise, 0);
  Epoch epoch(config_of(20, 10, 4), policy);
  open_batch(epoch);
  Slot& slot = open_batch(epoch);
  slot.samples.assign(slot.rows, 99);
  const Ticket ticket{std::shared_ptr<Slot>(std::shared_ptr<void>(), &slot), 4, 3};  // the epoch owns it
  ticket.assign_samples();
  EXPECT_EQ(slot.samples, (Samples{99, 99, 99, 99, 14, 15, 16, 99, 99, 99}));
}

TEST(Ticket, LeavesSamplesThatAreKnown) {
  const BadSamplePolicy policy(OnError::kRaise, 0);
  Epoch::Config config = config_of(20, 4);
  config.given = true;
  Epoch given(config, policy);
  given.give({{{7, 70}, {3, 30}}});
  open_batch(given);
  const auto ticket = given.take_ticket();
  ASSERT_TRUE(ticket);
  ticket->assign_samples();  // has no plan to query
  EXPECT_EQ(ticket->slot->samples, (Samples{7, 3}));
  EXPECT_EQ(Samples(&ticket->slot->draws[0], &ticket->slot->draws[2]), (Samples{70, 30}));

  Epoch epoch(config_of(20, 4), policy);
  Slot& slot = open_batch(epoch);
  slot.samples[1] = 19;
  const Ticket refill{epoch.oldest(), 1, 1, true};
  refill.assign_samples();
  EXPECT_EQ(refill.sample(), 19u);
}

TEST(Ticket, AdvancesInRunsAndNoFurtherOnceItsEpochIsGone) {
  const BadSamplePolicy policy(OnError::kRaise, 0);
  auto epoch = std::make_unique<Epoch>(config_of(40, 20, 8), policy);
  open_batch(*epoch);
  auto ticket = epoch->take_ticket();
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->rows, 8u);
  ticket->is_refill = true;
  EXPECT_TRUE(ticket->advance());
  EXPECT_EQ(ticket->row, 8u);
  EXPECT_EQ(ticket->rows, 8u);
  EXPECT_FALSE(ticket->is_refill) << "the rows after a refill are the plan's";
  epoch.reset();
  EXPECT_FALSE(ticket->advance()) << "four rows are left, and none is taken";
  EXPECT_EQ(ticket->slot->rows, 20u) << "rows in progress stay valid";
}

// open -> complete -> judged -> open for a refill -> complete -> resolved
TEST(Slot, GoesThroughItsStates) {
  const BadSamplePolicy policy(OnError::kSkip, 0);
  Epoch epoch(config_of(5, 2), policy);
  open_batch(epoch);
  const std::shared_ptr<Slot> slot = epoch.oldest();
  for (int row = 0; row < 2; ++row) {
    const auto ticket = epoch.take_ticket();
    ASSERT_TRUE(ticket);
    EXPECT_FALSE(slot->complete);
    ticket->assign_samples();
    if (row == 0) fail(epoch, *ticket);
    EXPECT_EQ(slot->tickets.finish(1), row == 1);
  }
  EXPECT_EQ(epoch.take_ready(), nullptr) << "it has not been settled";
  epoch.settle(*slot);
  EXPECT_TRUE(slot->judged);
  EXPECT_FALSE(slot->complete) << "one row must be filled again";
  EXPECT_FALSE(slot->resolved);
  EXPECT_EQ(epoch.take_ready(), nullptr);

  const auto refill = epoch.take_ticket();
  ASSERT_TRUE(refill);
  EXPECT_TRUE(refill->is_refill);
  EXPECT_EQ(refill->sample(), 4u) << "the last of the order";
  EXPECT_TRUE(slot->tickets.finish(1));
  epoch.settle(*slot);
  EXPECT_TRUE(slot->complete && slot->judged && slot->resolved);
  EXPECT_EQ(slot->refilled, 1u);
  EXPECT_EQ(epoch.take_ready(), slot);
  EXPECT_EQ(slot->samples, (Samples{4, 1}));
  EXPECT_EQ(slot->bad.size(), 1u);
}

// The failed rows of a slot are judged only after earlier slots have received their refills.
TEST(Slot, IsJudgedAfterThoseAheadOfIt) {
  const BadSamplePolicy policy(OnError::kSkip, 0);
  Epoch epoch(config_of(4, 2), policy);
  open_batch(epoch);
  const std::shared_ptr<Slot> first = epoch.oldest();
  Slot& second = open_batch(epoch);
  std::vector<Ticket> tickets;
  while (auto ticket = epoch.take_ticket()) {
    ticket->assign_samples();
    tickets.push_back(std::move(*ticket));
  }
  ASSERT_EQ(tickets.size(), 4u);
  fail(epoch, tickets[3]);
  EXPECT_TRUE(second.tickets.finish(2));
  epoch.settle(second);
  EXPECT_TRUE(second.complete);
  EXPECT_FALSE(second.judged);

  fail(epoch, tickets[0]);  // takes position 3, so the second slot's failure there no longer counts
  EXPECT_TRUE(first->tickets.finish(2));
  epoch.settle(*first);
  const auto refill = epoch.take_ticket();
  ASSERT_TRUE(refill);
  EXPECT_EQ(refill->slot, first);
  EXPECT_EQ(refill->sample(), 3u);
  EXPECT_TRUE(first->tickets.finish(1));
  epoch.settle(*first);
  EXPECT_TRUE(second.judged && second.resolved);
  EXPECT_TRUE(second.bad.empty());
  EXPECT_FALSE(epoch.has_refill());
}

// Completes and returns the next batch; one of its rows fails if `fails` is set.
Slot& completed(Epoch& epoch, bool fails = false) {
  Slot& slot = open_batch(epoch);
  while (const auto ticket = epoch.take_ticket()) {
    ticket->assign_samples();
    if (fails && ticket->row == 0) fail(epoch, *ticket);
  }
  EXPECT_TRUE(slot.tickets.finish(slot.rows));
  return slot;
}

// Batches with variable-size fields, or for a device, are prepared when they are final.
TEST(Slot, IsFinalWhenItIsCompleteAndDeliveredOnceItIsReady) {
  const BadSamplePolicy policy(OnError::kRaise, 0);
  Epoch::Config config = config_of(6, 2);
  config.prepares = true;
  Epoch epoch(config, policy);
  Slot &first = completed(epoch), &second = completed(epoch), &third = completed(epoch, true);
  epoch.settle(second);
  EXPECT_EQ(epoch.take_final().get(), &second) << "before the first: nothing will change it";
  EXPECT_EQ(epoch.take_final(), nullptr) << "once";
  epoch.settle(first);
  EXPECT_EQ(epoch.take_final().get(), &first);
  epoch.note_ready(second);
  EXPECT_EQ(epoch.take_ready(), nullptr);
  EXPECT_EQ(epoch.ready_slots(), 1u);
  epoch.note_ready(first);
  EXPECT_EQ(epoch.ready_slots(), 2u);
  EXPECT_EQ(epoch.take_ready().get(), &first);
  EXPECT_EQ(epoch.take_ready().get(), &second);
  epoch.settle(third);
  EXPECT_EQ(epoch.take_final(), nullptr) << "it is an error, and the batch is not delivered";
  EXPECT_EQ(epoch.take_ready().get(), &third);
  EXPECT_EQ(epoch.ready_slots(), 0u);
}

TEST(Slot, WhatRefillsMayStillReachIsNotFinal) {
  const BadSamplePolicy policy(OnError::kSkip, 0);
  Epoch::Config config = config_of(40, 2);
  config.prepares = true;
  Epoch epoch(config, policy);
  Slot &first = completed(epoch, true), &second = completed(epoch);
  epoch.settle(second);
  EXPECT_EQ(epoch.take_final(), nullptr);
  epoch.settle(first);
  EXPECT_EQ(epoch.take_final(), nullptr) << "one of its rows is filled again";
  const auto refill = epoch.take_ticket();
  ASSERT_TRUE(refill && refill->is_refill);
  EXPECT_TRUE(first.tickets.finish(1));
  epoch.settle(first);
  const auto finals = epoch.take_final();
  EXPECT_EQ(finals.get(), &first);
  ASSERT_TRUE(finals);
  EXPECT_EQ(finals->prepared->next_final.get(), &second) << "the same thread settles it";
}

TEST(Slot, OutOfOrderIsFinalWhereNoRefillCanReachIt) {
  const BadSamplePolicy policy(OnError::kSkip, 0);
  Epoch::Config config = config_of(400, 2);
  config.prepares = true;
  config.in_order = false;
  Epoch epoch(config, policy);
  Slot &first = completed(epoch), &second = completed(epoch);
  epoch.settle(second);
  EXPECT_EQ(epoch.take_final().get(), &second);
  EXPECT_EQ(epoch.take_ready(), nullptr);
  epoch.note_ready(second);
  EXPECT_EQ(epoch.take_ready().get(), &second);
  epoch.settle(first);
  EXPECT_EQ(epoch.take_final().get(), &first);
}

}  // namespace
}  // namespace feedline::pipeline
