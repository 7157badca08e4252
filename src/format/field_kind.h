// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recognises the kind of a stored file by its name or first bytes, and parses integers stored in files.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// Returns the kind of a field, which is determined by its name and the lower-case extension of its files. The extension
// may contain dots ("seg.png").
FieldKind usual_kind(std::string_view name, std::string_view extension);
// Removes ":KIND" from the end of a spec. Returns nullopt if the spec has no kind. Fails with kConfig if the kind is
// unknown.
Result<std::optional<FieldKind>> take_kind(std::string_view& spec);
// Returns whether a file of this kind may be empty.
bool may_be_empty(FieldKind kind);

// Parses an ASCII integer with optional white space before and after it, like Python's int(). Returns nullopt if the
// text is not an integer.
std::optional<std::int64_t> parse_integer(std::span<const std::byte> text);
// Returns the error message for a text that parse_integer() rejects; the message shows at most 40 bytes of the text.
std::string not_an_integer(std::span<const std::byte> text);

}  // namespace feedline::format
