// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "gate/case.h"
#include "pipeline/epoch/epoch_fixture.h"
#include "plan/order.h"

namespace feedline::gate {
namespace {

std::shared_ptr<const plan::Order> shuffled(std::uint64_t size) {
  plan::OrderConfig config;
  config.size = size;
  config.shuffle = true;
  config.seed = 3;
  return plan::make_order(config, 1);
}

// The cost of shuffling: the samples at consecutive positions, as for a batch.
std::function<void()> looks_up_permutation() {
  const auto order = shuffled(1'281'167);  // ImageNet
  auto samples = std::make_shared<std::vector<std::uint64_t>>(256);
  auto draws = std::make_shared<std::vector<std::uint64_t>>(256);
  return [=] {
    for (std::uint64_t first = 0; first < 40 * 256; first += 256) order->place(first, *samples, *draws);
  };
}

// The bookkeeping of batches of one-row tickets, by one thread.
std::function<void()> keeps_books() {
  const auto order = shuffled(100 * 256);
  return [order] {
    const pipeline::BadSamplePolicy policy(OnError::kRaise, 0);
    pipeline::Epoch::Config config;
    config.order = order;
    config.plan = {.batch_rows = 256};
    pipeline::Epoch epoch(config, policy);
    std::uint64_t rows = 0;
    while (epoch.can_open()) {
      pipeline::Slot& slot = open_batch(epoch);
      auto ticket = epoch.take_ticket();
      std::uint64_t filled = 0;
      do filled += ticket->rows;
      while (ticket->advance());
      if (slot.tickets.finish(filled)) epoch.settle(slot);
      rows += epoch.take_ready()->rows;
    }
    require(rows == 100 * 256, "rows are missing");
  };
}

}  // namespace

std::vector<Case> order_cases() { return {{"permutation", looks_up_permutation}, {"bookkeeping", keeps_books}}; }

}  // namespace feedline::gate
