// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "feedline/packing.h"
#include "pipeline/sample/source.h"

namespace feedline::format {
class PackedFormat;
struct TokenFields;
}  // namespace feedline::format

namespace feedline::pipeline {

// The token sequences of a dataset, and the source of packs made from them. Thread-safe; copies share both.
class PackSource {
 public:
  // kConfig: an option is out of range, or the dataset does not have the fields to pack; see token_fields_of(). Reads
  // all samples once if their lengths are not known.
  static Result<PackSource> make(const Source& sequences, const PackOptions& options);

  const PackOptions& options() const { return options_; }
  const Source& sequences() const { return sequences_; }
  Source packs() const { return packs_; }  // a dataset of packs, for a recipe
  void lengths(std::span<const std::uint64_t> documents, std::span<std::uint64_t> lengths) const;
  // Returns the same sequences with separate packs, for another loader.
  PackSource with_own_packs(PackLabels labels) const;
  std::string describe() const;           // the options that determine packs: "rows of 8192 tokens, best_fit, ..."
  std::string describe_contents() const;  // the other options: "labels input_ids, pad 0"
  // Returns a fingerprint of the dataset and of the options that determine packs.
  std::uint64_t fingerprint() const;

  // See PackedFormat.
  std::uint64_t add(std::vector<std::vector<PackPiece>> rows) const;
  void forget_before(std::uint64_t first) const;
  std::optional<PackSegments> segments_of(std::uint64_t sample) const;

 private:
  PackSource(Source sequences, std::shared_ptr<const format::TokenFields> fields,
             std::shared_ptr<format::PackedFormat> packed, const PackOptions& options);

  Source sequences_, packs_;
  std::shared_ptr<const format::TokenFields> fields_;
  std::shared_ptr<format::PackedFormat> packed_;
  PackOptions options_;
};

}  // namespace feedline::pipeline
