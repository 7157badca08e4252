// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses which members of a WebDataset sample make up a field: alternatives in order of preference.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/field_kind.h"
#include "format/format.h"
#include "format/tar/shard_index.h"

namespace feedline::format {

struct FieldChoice {
  FieldDescription description;
  std::vector<std::string> alternatives;  // lower-case extensions
};

// Returns "image" from the extensions of the formats that the engine decodes, and "label" from an integer member.
std::vector<FieldChoice> default_fields();

// Parses one field per spec such as "jpg;png" or "left.png:mask", named after its first alternative. kConfig: an empty
// extension, alternatives of different kinds, an unknown kind, or two fields with the same name.
Result<std::vector<FieldChoice>> parse_fields(const std::vector<std::string>& specs);

// Returns the fields to read from these shards: `fields` without a default label that no shard has. kConfig: a field
// has no member in any shard, or no shard has samples.
Result<std::vector<FieldChoice>> keep_present(std::vector<FieldChoice> fields, bool are_default,
                                              std::span<const ShardIndex* const> indexes);

// Finds the chosen members in the samples of one shard. Immutable; the index must outlive it.
class FieldFinder {
 public:
  FieldFinder(const ShardIndex& index, const std::vector<FieldChoice>& fields);
  // Returns the preferred alternative that the sample has; nullopt if it has none.
  std::optional<ShardIndex::Member> find(std::uint64_t sample, std::size_t field) const;

 private:
  const ShardIndex* index_;
  std::vector<std::uint32_t> ranks_;  // [field x extension]: position in the alternatives
};

}  // namespace feedline::format
