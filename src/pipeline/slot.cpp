// SPDX-License-Identifier: Apache-2.0
#include "pipeline/slot.h"

#include <span>

namespace feedline::pipeline {

void Slot::place() {
  for (std::size_t row = 0; row < given.size(); ++row) {
    samples[row] = given[row].index;
    draws[row] = given[row].draw;
  }
  given = {};
  if (is_placed && plan) plan->place(first, samples, draws);
}

void Ticket::place() const {
  if (is_refill || slot->is_placed) return;
  const auto rows_of = [this](std::vector<std::uint64_t>& all) { return std::span(all).subspan(row, rows); };
  slot->plan->place(slot->first + row, rows_of(slot->samples), rows_of(slot->draws));
}

bool Ticket::advance() {
  const RowRun run = slot->tickets.take(slot->grain);
  row = run.first;
  rows = run.rows;
  is_refill = false;
  return rows > 0;
}

}  // namespace feedline::pipeline
