// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/slot.h"

#include <span>

namespace feedline::pipeline {

std::shared_ptr<Slot> Slot::make(std::uint64_t rows, bool prepares) {
  auto slot = std::make_shared<Slot>();
  slot->samples.resize(rows);
  slot->draws = std::make_unique_for_overwrite<std::uint64_t[]>(rows);
  slot->node_in_epoch.emplace_back();
  if (!prepares) return slot;
  slot->prepared = std::make_unique<Prepared>();
  slot->prepared->slot = slot;
  return slot;
}

void Slot::assign_samples() {
  for (const auto& rows_given : given)
    for (std::size_t row = 0; row < rows_given.size(); ++row) {
      samples[row] = rows_given[row].index;
      draws[row] = rows_given[row].draw;
    }
  given.clear();
  if (is_assigned && plan) assign_samples(0, samples.size());
}

void Slot::assign_samples(std::uint64_t row, std::uint64_t count) {
  plan->place(first + row, std::span(samples).subspan(row, count), {draws.get() + row, count});
}

void Ticket::assign_samples() const {
  if (is_refill || slot->is_assigned) return;
  slot->assign_samples(row, rows);
}

bool Ticket::advance() {
  const RowRun run = slot->tickets.take(slot->grain);
  row = run.first;
  rows = run.rows;
  is_refill = false;
  return rows > 0;
}

}  // namespace feedline::pipeline
