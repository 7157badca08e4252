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

// The maximum depth of nested elements. The deepest known format uses five levels.
inline constexpr std::size_t kMostXmlDepth = 32;

// An element, passed when its end tag is read.
struct XmlElement {
  std::span<const std::string> path;  // the names from the root element to this one
  std::string_view text;              // in UTF-8, without the text of the elements inside
  std::uint64_t offset = 0;           // of the end tag

  std::string_view name() const { return path.back(); }
};

// Calls `take` for each element until `take` returns false, which is not an error. Attributes, comments and processing
// instructions are skipped. Uses the declared encoding: UTF-8, UTF-16, US-ASCII or a single-byte code page. Fails with
// kData and the byte offset if the document is invalid, has an entity declaration, or has an unsupported encoding.
Result<void> read_xml(std::string_view document, const std::function<bool(const XmlElement&)>& take);

}  // namespace feedline::text
