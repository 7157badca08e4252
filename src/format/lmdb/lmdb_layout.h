// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps the entries of a database to fields.

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

// The part of a value that a field uses.
enum class ValuePart : std::uint8_t { kWhole, kDatumImage, kDatumLabel };

struct LmdbField {
  FieldDescription description;
  std::size_t source = 0;  // index into LmdbLayout::sources
  ValuePart part = ValuePart::kWhole;
};

struct LmdbLayout {
  std::vector<KeyPattern> sources;
  std::vector<LmdbField> fields;
  bool is_counted = false;  // the entry "num-samples" has the number of samples
};

inline constexpr std::string_view kSampleCount = "num-samples";

using ReadEntry = std::function<Result<std::span<const std::byte>>(std::uint64_t entry)>;

// Chooses one field per spec. A spec is "[NAME=]PATTERN[:KIND]", or for values that are Datums "[NAME=]image" or
// "[NAME=]label". Without specs, the fields are inferred from the keys and the first values. Fails with kConfig if the
// fields cannot be inferred, a pattern matches no key, or two fields have the same name.
Result<LmdbLayout> choose_layout(const std::vector<std::string>& specs, const LmdbIndex& index, const ReadEntry& read);

}  // namespace feedline::format
