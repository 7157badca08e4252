// SPDX-License-Identifier: Apache-2.0
#include "plan/pack_window.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "plan/permutation.h"

namespace feedline {

PackCounts& PackCounts::operator+=(const PackCounts& other) {
  documents += other.documents;
  empty += other.empty;
  dropped += other.dropped;
  truncated += other.truncated;
  split += other.split;
  pieces += other.pieces;
  tokens += other.tokens;
  lost_tokens += other.lost_tokens;
  packs += other.packs;
  return *this;
}

namespace plan {

WindowPacker::WindowPacker(const PackOptions& options)
    : options_(options),
      row_(static_cast<std::uint32_t>(options.length)),
      first_free_(options.length + 1, kNone),
      free_bits_(options.length / 64 + 1),
      free_summary_(options.length / 4096 + 1) {
  FEEDLINE_CHECK(options.length > 0 && options.length < std::uint64_t{1} << 31);
  FEEDLINE_CHECK(options.document_multiple > 0 && options.length % options.document_multiple == 0);
  FEEDLINE_CHECK(options.method == PackMethod::kBestFit || options.overlong == LongDocuments::kSplit);
}

std::uint32_t WindowPacker::padded(std::uint32_t length) const {
  if (options_.document_multiple == 1) return length;
  const auto multiple = static_cast<std::uint32_t>(options_.document_multiple);
  return (length + multiple - 1) / multiple * multiple;
}

// Divides documents into items of at most one row.
PackCounts WindowPacker::cut(std::span<const std::uint64_t> lengths) {
  PackCounts counts{.documents = lengths.size()};
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    std::uint64_t left = lengths[i];
    if (left == 0) {
      ++counts.empty;
      continue;
    }
    if (left > row_ && options_.overlong == LongDocuments::kDrop) {
      ++counts.dropped;
      counts.lost_tokens += left;
      continue;
    }
    if (left > row_ && options_.overlong == LongDocuments::kTruncate) {
      ++counts.truncated;
      counts.lost_tokens += left - row_;
      left = row_;
    }
    counts.tokens += left;
    counts.split += left > row_;
    std::uint64_t begin = 0;
    for (; left > row_; left -= row_, begin += row_) items_.push_back({i, row_, begin, true, row_});
    const auto last = static_cast<std::uint32_t>(left);
    items_.push_back({i, last, begin, false, padded(last)});
  }
  return counts;
}

// Divides the concatenation of all documents into rows, and assigns the pieces to packs.
PackCounts WindowPacker::cut_concatenated(std::span<const std::uint64_t> lengths) {
  PackCounts counts{.documents = lengths.size()};
  std::uint32_t used = row_;  // of the last pack
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    counts.empty += lengths[i] == 0;
    counts.tokens += lengths[i];
    counts.split += lengths[i] > row_ - used % row_;
    for (std::uint64_t begin = 0; begin < lengths[i];) {
      if (used == row_) used = 0, ++packs_;
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(lengths[i] - begin, row_ - used));
      items_.push_back({i, length, begin, begin + length < lengths[i], padded(length)});
      pack_of_.push_back(packs_ - 1);
      used += padded(length);
      begin += length;
    }
  }
  return counts;
}

std::uint32_t WindowPacker::smallest_free_from(std::uint32_t size) const {
  std::uint32_t word = size / 64;
  std::uint64_t bits = free_bits_[word] >> (size % 64) << (size % 64);
  if (bits == 0) {
    ++word;
    std::uint32_t group = word / 64;
    if (group >= free_summary_.size()) return kNone;
    std::uint64_t words = free_summary_[group] >> (word % 64) << (word % 64);
    while (words == 0) {
      if (++group == free_summary_.size()) return kNone;
      words = free_summary_[group];
    }
    word = group * 64 + static_cast<std::uint32_t>(std::countr_zero(words));
    bits = free_bits_[word];
  }
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
}

void WindowPacker::push_free(std::uint32_t size, std::uint32_t pack) {
  next_free_[pack] = first_free_[size];
  first_free_[size] = pack;
  free_bits_[size / 64] |= std::uint64_t{1} << (size % 64);
  free_summary_[size / 4096] |= std::uint64_t{1} << (size / 64 % 64);
}

std::uint32_t WindowPacker::pop_free(std::uint32_t size) {
  const std::uint32_t pack = first_free_[size];
  first_free_[size] = next_free_[pack];
  if (first_free_[size] != kNone) return pack;
  std::uint64_t& bits = free_bits_[size / 64];
  bits &= ~(std::uint64_t{1} << (size % 64));
  if (bits == 0) free_summary_[size / 4096] &= ~(std::uint64_t{1} << (size / 64 % 64));
  return pack;
}

void WindowPacker::assign_best_fit() {
  starts_.assign(row_ + 2, 0);
  for (const Item& item : items_) ++starts_[row_ - item.padded + 1];
  for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  sorted_.resize(items_.size());
  for (std::uint32_t i = 0; i < items_.size(); ++i) sorted_[starts_[row_ - items_[i].padded]++] = i;
  pack_of_.resize(items_.size());
  next_free_.resize(items_.size());
  for (const std::uint32_t i : sorted_) {
    const std::uint32_t length = items_[i].padded;
    const std::uint32_t found = smallest_free_from(length);
    const std::uint32_t pack = found == kNone ? packs_++ : pop_free(found);
    const std::uint32_t left = (found == kNone ? row_ : found) - length;
    if (left > 0) push_free(left, pack);
    pack_of_[i] = pack;
  }
  std::ranges::fill(first_free_, kNone);
  std::ranges::fill(free_bits_, 0);
  std::ranges::fill(free_summary_, 0);
}

PackCounts WindowPacker::count(std::span<const std::uint64_t> lengths) {
  items_.clear();
  pack_of_.clear();
  packs_ = 0;
  PackCounts counts;
  if (options_.method == PackMethod::kConcat) {
    counts = cut_concatenated(lengths);
  } else {
    counts = cut(lengths);
    assign_best_fit();
  }
  counts.pieces = items_.size();
  counts.packs = packs_;
  return counts;
}

// Assigns each item the position of its pack in the permuted order, instead of the pack.
void WindowPacker::permute(std::uint64_t key) {
  order_.resize(packs_);
  Permutation(packs_, key).fill(0, order_);
  positions_.resize(packs_);
  for (std::uint32_t i = 0; i < packs_; ++i) positions_[order_[i]] = i;
  for (std::uint32_t& pack : pack_of_) pack = positions_[pack];
}

void WindowPacker::pack(std::span<const std::uint64_t> documents, std::span<const std::uint64_t> lengths,
                        std::optional<std::uint64_t> key, PackedWindow& window) {
  FEEDLINE_CHECK(documents.size() == lengths.size());
  window.counts = count(lengths);
  if (key && packs_ > 0) permute(*key);
  // counting sort of the items by pack: ends[pack] is first where the next piece of the pack goes
  window.ends.assign(packs_, 0);
  for (const std::uint32_t pack : pack_of_) ++window.ends[pack];
  std::uint32_t begin = 0;
  for (std::uint32_t& end : window.ends) {
    const std::uint32_t pieces = end;
    end = begin;
    begin += pieces;
  }
  window.pieces.resize(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Item& item = items_[i];
    window.pieces[window.ends[pack_of_[i]]++] = {documents[item.document], item.begin, item.length, item.continues};
  }
}

}  // namespace plan
}  // namespace feedline
