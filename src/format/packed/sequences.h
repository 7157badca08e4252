// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "format/format.h"

namespace feedline::format {

// One-dimensional sequences of integers whose lengths are known: a field of a dataset. Immutable and thread-safe.
class Sequences {
 public:
  virtual ~Sequences() = default;
  virtual std::uint64_t size() const = 0;
  virtual void lengths(std::span<const std::uint64_t> sequences, std::span<std::uint64_t> lengths) const = 0;
  // Reads the elements [begin, begin + out.size()) of a sequence; bools are read as 0 and 1. Returns the number of
  // bytes read. Errors have the location of the sequence. Requires: the elements exist.
  virtual Result<std::uint64_t> read(std::uint64_t sequence, std::uint64_t begin,
                                     std::span<std::int64_t> out) const = 0;
  virtual Where where(std::uint64_t sequence) const = 0;
};

// The fields of a dataset that are packed: lists of the same length in each sample.
struct TokenFields {
  std::shared_ptr<const Sequences> tokens;
  std::shared_ptr<const Sequences> loss_mask;  // nullptr if the dataset has none; 0: the token is not trained
  std::shared_ptr<const Sequences> labels;     // nullptr if the dataset has none; a token, or kIgnoredLabel
};

constexpr std::int64_t kIgnoredLabel = -100;  // ignore_index of torch's cross_entropy

// Finds the fields to pack. The tokens are the field `field`; if that is empty, `input_ids` or the only list of
// integers. The others are the fields `loss_mask` and `labels`, if the dataset has them. The lengths of a record
// format's lists are found by reading all samples once. kConfig: the field does not exist, several fields match, or a
// dtype is not an integer of at most 64 bits (or bool, for the loss mask). kData: in a sample, the lists differ in
// length. `name` is the dataset's name, for messages.
Result<TokenFields> token_fields_of(const std::shared_ptr<const Format>& format, const std::string& field,
                                    const std::string& name);

}  // namespace feedline::format
