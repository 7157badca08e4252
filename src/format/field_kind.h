// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises the kind of a stored file by its name or first bytes, and parses integers stored in files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// The kind of a field, from its name and the lower-case extension of its files, which may contain dots ("seg.png").
FieldKind usual_kind(std::string_view name, std::string_view extension);
// Removes ":KIND" from the end of a spec; nullopt if there is none. kConfig: unknown kind.
Result<std::optional<FieldKind>> take_kind(std::string_view& spec);
// True if a file of this kind may be empty.
bool may_be_empty(FieldKind kind);

// Parses an ASCII integer surrounded by optional white space, as Python's int() does. nullopt: not an integer.
std::optional<std::int64_t> parse_integer(std::span<const std::byte> text);

}  // namespace feedline::format
