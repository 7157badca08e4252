// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which entries of a database make a field, and what the field is.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/lmdb/key_pattern.h"
#include "format/lmdb/lmdb_index.h"

namespace feedline::format {

// What of a value a field takes.
enum class ValuePart : std::uint8_t { kWhole, kDatumImage, kDatumLabel };

struct LmdbField {
  FieldDescription description;
  std::size_t source = 0;  // of LmdbLayout::sources
  ValuePart part = ValuePart::kWhole;
};

struct LmdbLayout {
  std::vector<KeyPattern> sources;
  std::vector<LmdbField> fields;
  bool is_counted = false;  // the entry "num-samples" says how many there are
};

inline constexpr std::string_view kSampleCount = "num-samples";

using ReadEntry = std::function<Result<std::span<const std::byte>>(std::uint64_t entry)>;

// One field per spec: "[NAME=]PATTERN[:KIND]", or "[NAME=]image", "[NAME=]label" of values that are Datums; none: what
// the keys and the first values are known to be. kConfig: neither, a pattern that no key has, or two fields of one
// name.
Result<LmdbLayout> choose_layout(const std::vector<std::string>& specs, const LmdbIndex& index, const ReadEntry& read);

}  // namespace feedline::format
