// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses the members of WebDataset samples that are fields. A field may have alternatives in order of preference.

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

// Returns the fields "image", with the extensions of the formats that the engine decodes, and "label", an integer
// member.
std::vector<FieldChoice> default_fields();

// Parses one field per spec, such as "jpg;png" or "left.png:mask". Fields are named after their first alternative.
// Fails with kConfig if an extension is empty, alternatives have different kinds, a kind is unknown, or two fields have
// the same name.
Result<std::vector<FieldChoice>> parse_fields(const std::vector<std::string>& specs);

// Returns `fields`, without the default label if no shard has one. Fails with kConfig if no shard has a member of a
// field, or if no shard has samples.
Result<std::vector<FieldChoice>> keep_present(std::vector<FieldChoice> fields, bool are_default,
                                              std::span<const ShardIndex* const> indexes);

// Finds the chosen members in the samples of one shard. Immutable. The index must outlive this object.
class FieldFinder {
 public:
  FieldFinder(const ShardIndex& index, const std::vector<FieldChoice>& fields);
  // Returns the number of the first alternative that the sample has, or nullopt if it has none.
  std::optional<std::uint64_t> find_number(std::uint64_t sample, std::size_t field) const;
  std::optional<ShardIndex::Member> find(std::uint64_t sample, std::size_t field) const {
    const auto number = find_number(sample, field);
    return number ? std::optional(index_->member(*number)) : std::nullopt;
  }

 private:
  const ShardIndex* index_;
  std::vector<std::uint32_t> ranks_;  // [field x extension]: position in the alternatives
};

}  // namespace feedline::format
