// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the elements and text of a small XML file. Skips attributes, comments and instructions; rejects document types,
// which could define entities.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::format {

// Not thread-safe.
class XmlReader {
 public:
  enum class Event : std::uint8_t { kBegin, kText, kEnd, kDone, kError };
  static constexpr std::size_t kMostDepth = 32;

  explicit XmlReader(std::string_view text) : text_(text) {}

  // Returns the next event; kError is permanent.
  Event next();
  std::string_view name() const { return name_; }          // for kBegin and kEnd
  const std::string& content() const { return content_; }  // for kText: with references resolved; not blank
  std::size_t depth() const { return open_.size(); }       // number of open elements after the event
  const std::string& error() const { return error_; }      // message with the byte offset
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
  bool ends_at_once_ = false;  // the last event was the begin of "<name/>"
  bool has_root_ = false;
};

}  // namespace feedline::format
