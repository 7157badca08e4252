// SPDX-License-Identifier: Apache-2.0
#include "plan/pack_order.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {
namespace {

// Separates the permutation of packs from that of documents, which has the same seed and epoch.
constexpr std::uint64_t kPackStream = 0x7061636B73;  // "packs"

}  // namespace

PackOrder::PackOrder(const OrderConfig& order, std::uint64_t epoch, const PackOptions& options, Lengths lengths)
    : order_(make_order(order, epoch)),
      options_(options),
      lengths_(std::move(lengths)),
      shuffle_(order.shuffle),
      key_(base::mix64(base::mix64(base::mix64(order.seed) + epoch) ^ kPackStream)) {
  FEEDLINE_CHECK(options.window > 0);
}

std::uint64_t PackOrder::windows() const {
  return order_->size() / options_.window + (order_->size() % options_.window > 0 ? 1 : 0);
}

void PackOrder::documents_of(std::uint64_t window, Documents& documents) const {
  FEEDLINE_CHECK(window < windows());
  const std::uint64_t first = window * options_.window;
  const std::uint64_t count = std::min(options_.window, order_->size() - first);
  documents.numbers.resize(count);
  documents.draws.resize(count);
  documents.lengths.resize(count);
  order_->place(first, documents.numbers, documents.draws);
  lengths_(documents.numbers, documents.lengths);
}

std::shared_ptr<const PackedWindow> PackOrder::window(std::uint64_t window) const {
  Documents documents;
  documents_of(window, documents);
  PackedWindow packed;
  WindowPacker(options_).pack(documents.numbers, documents.lengths,
                              shuffle_ ? std::optional(base::mix64(key_ + window)) : std::nullopt, packed);
  return std::make_shared<const PackedWindow>(std::move(packed));
}

PackCounts PackOrder::count(std::uint64_t windows) const {
  WindowPacker packer(options_);
  Documents documents;
  PackCounts counts;
  for (std::uint64_t w = 0; w < windows; ++w) {
    documents_of(w, documents);
    counts += packer.count(documents.lengths);
  }
  return counts;
}

}  // namespace feedline::plan
