// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "feedline/packing.h"
#include "plan/order.h"
#include "plan/pack_window.h"

namespace feedline::plan {

// The packs of an epoch. The epoch's order of documents is divided into windows, each window is packed separately, and
// its packs are permuted, because best-fit decreasing starts packs with the longest documents first. The packs of
// window w follow those of window w - 1, so the position of a pack is (window, pack in the window), and finding it
// needs only its own window.
//
// Immutable and thread-safe, if `lengths` is.
class PackOrder {
 public:
  // Returns the lengths of documents.
  using Lengths = std::function<void(std::span<const std::uint64_t> documents, std::span<std::uint64_t> lengths)>;

  // order: the order of the documents. Requires: valid options, see WindowPacker.
  PackOrder(const OrderConfig& order, std::uint64_t epoch, const PackOptions& options, Lengths lengths);

  std::uint64_t windows() const;
  // Packs a window. Requires: window < windows().
  std::shared_ptr<const PackedWindow> window(std::uint64_t window) const;
  // Returns the sum for the first `windows` windows.
  PackCounts count(std::uint64_t windows) const;

 private:
  struct Documents {
    std::vector<std::uint64_t> numbers, draws, lengths;
  };
  void documents_of(std::uint64_t window, Documents& documents) const;

  const std::shared_ptr<const Order> order_;
  const PackOptions options_;
  const Lengths lengths_;
  const bool shuffle_;
  const std::uint64_t key_;
};

}  // namespace feedline::plan
