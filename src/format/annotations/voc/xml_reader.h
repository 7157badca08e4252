// SPDX-License-Identifier: Apache-2.0
#pragma once

// The elements and text of a small XML file. Attributes, comments and instructions are gone past; a document type,
// which could define what text stands for, is refused.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {

// Not for several threads at once.
class XmlReader {
 public:
  enum class Event : std::uint8_t { kBegin, kText, kEnd, kDone, kError };
  static constexpr std::size_t kMostDepth = 32;

  explicit XmlReader(std::string_view text) : text_(text) {}

  // The next one; of kError from then on.
  Event next();
  std::string_view name() const { return name_; }          // of kBegin and kEnd
  const std::string& content() const { return content_; }  // of kText, what it stands for; not only white space
  std::size_t depth() const { return open_.size(); }       // elements that are open, behind the event
  const std::string& error() const { return error_; }      // what, and at which byte
  std::size_t offset() const { return next_; }

 private:
  Event fail(const char* what);
  Event take_tag();
  Event take_text();
  bool skip_behind(std::string_view end);
  bool skip_attributes(bool& is_empty);
  bool add_reference();

  std::string_view text_;
  std::size_t next_ = 0;
  std::vector<std::string_view> open_;
  std::string_view name_;
  std::string content_, error_;
  bool ends_at_once_ = false;  // "<name/>" has begun
  bool has_root_ = false;
};

}  // namespace feedline::format
