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
  // Reads the elements [begin, begin + out.size()) of a sequence. Returns the number of bytes read. Errors have the
  // location of the sequence. Requires: the elements exist.
  virtual Result<std::uint64_t> read(std::uint64_t sequence, std::uint64_t begin,
                                     std::span<std::int64_t> out) const = 0;
  virtual Where where(std::uint64_t sequence) const = 0;
};

// Returns a field of the dataset as sequences; if `field` is empty, the only field of that kind. The lengths of a
// record format are found by reading all samples once. kConfig: the field does not exist, several fields match, or its
// dtype is not an integer of at most 64 bits; or, if `field` is empty, the dataset has a loss mask, which would be
// lost. `name` is the dataset's name, for messages.
Result<std::shared_ptr<const Sequences>> sequences_of(const std::shared_ptr<const Format>& format,
                                                      const std::string& field, const std::string& name);

}  // namespace feedline::format
