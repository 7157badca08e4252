// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the elements of an XML document with expat.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::text {

// More nested elements are an error; the deepest known format uses five.
inline constexpr std::size_t kMostXmlDepth = 32;

// An element, at its end tag.
struct XmlElement {
  std::span<const std::string> path;  // the names from the root element to this one
  std::string_view text;              // in UTF-8, without the text of the elements inside
  std::uint64_t offset = 0;           // of the end tag

  std::string_view name() const { return path.back(); }
};

// Calls `take` for each element until it returns false, which is not an error. Attributes, comments and processing
// instructions are skipped. The encoding is the declared one: UTF-8, UTF-16, US-ASCII or a single-byte code page.
// kData, with the byte offset: an invalid document, an entity declaration, or an unsupported encoding.
Result<void> read_xml(std::string_view document, const std::function<bool(const XmlElement&)>& take);

}  // namespace feedline::text
