// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which members of a WebDataset sample make a field: alternatives in order of preference.

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
  std::vector<std::string> alternatives;  // extensions, lower case
};

// "image" from jpg, jpeg, png or webp, and "label" from an integer member.
std::vector<FieldChoice> default_fields();

// One field per spec like "jpg;png" or "left.png:mask", named after its first alternative. kConfig: an empty extension,
// alternatives of two kinds, a kind that there is not, two fields of one name.
Result<std::vector<FieldChoice>> parse_fields(const std::vector<std::string>& specs);

// The fields to read from these shards: `fields` without a default label that no shard has. kConfig: no shard has any
// member for a field, or there is no shard with a sample.
Result<std::vector<FieldChoice>> keep_present(std::vector<FieldChoice> fields, bool are_default,
                                              std::span<const ShardIndex* const> indexes);

// Finds the chosen members in the samples of one shard. Immutable; the index must outlive it.
class FieldFinder {
 public:
  FieldFinder(const ShardIndex& index, const std::vector<FieldChoice>& fields);
  // nullopt: the sample lacks it. Of several alternatives present, the one preferred.
  std::optional<ShardIndex::Member> find(std::uint64_t sample, std::size_t field) const;

 private:
  const ShardIndex* index_;
  std::vector<std::uint32_t> ranks_;  // [field x extension]: place among the alternatives
};

}  // namespace feedline::format
