// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a stored file is, by its name or its first bytes, and the integers that files hold.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// The kind of a field by its name and the extension of its files, which may have dots ("seg.png"), in lower case.
FieldKind usual_kind(std::string_view name, std::string_view extension);
// Takes ":KIND" off the end of a spec; nullopt: there is none. kConfig: no such kind.
Result<std::optional<FieldKind>> take_kind(std::string_view& spec);
// May a file of it have no bytes?
bool may_be_empty(FieldKind kind);

// An ASCII integer with white space around it, as Python's int() reads it. nullopt: anything else.
std::optional<std::int64_t> parse_integer(std::span<const std::byte> text);

}  // namespace feedline::format
