// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/xml_reader.h"

#include <array>
#include <charconv>
#include <utility>

#include "text/utf8.h"

namespace feedline::format {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

struct Reference {
  std::string_view name, value;
};
constexpr std::array<Reference, 5> kReferences{{{"lt", "<"}, {"gt", ">"}, {"amp", "&"}, {"quot", "\""}, {"apos", "'"}}};

}  // namespace

XmlReader::Event XmlReader::fail(const char* what) {
  if (error_.empty()) error_ = std::string("invalid or unsupported XML: ") + what + " at byte " + std::to_string(next_);
  return Event::kError;
}

bool XmlReader::skip_behind(std::string_view end) {
  const std::size_t place = text_.find(end, next_);
  if (place == text_.npos) return fail("an unterminated section"), false;
  next_ = place + end.size();
  return true;
}

XmlReader::Event XmlReader::next() {
  if (!error_.empty()) return Event::kError;
  if (std::exchange(ends_at_once_, false)) {
    name_ = open_.back();
    open_.pop_back();
    return Event::kEnd;
  }
  while (true) {
    if (next_ == text_.size()) {
      if (!open_.empty()) return fail("the text ends within an element");
      return has_root_ ? Event::kDone : fail("no element");
    }
    const std::string_view rest = text_.substr(next_);
    if (rest.starts_with("<!--")) {
      if (!skip_behind("-->")) return Event::kError;
    } else if (rest.starts_with("<?")) {
      if (!skip_behind("?>")) return Event::kError;
    } else if (rest.starts_with("<!") && !rest.starts_with("<![CDATA[")) {
      return fail("a document type, which is not supported,");
    } else if (rest.front() == '<' && !rest.starts_with("<![CDATA[")) {
      return take_tag();
    } else if (const Event event = take_text(); event != Event::kDone) {
      return event;
    }
  }
}

bool XmlReader::skip_attributes(bool& is_empty) {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == '>' || (c == '/' && text_.substr(next_).starts_with("/>"))) {
      is_empty = c == '/';
      next_ += is_empty ? 2 : 1;
      return true;
    }
    ++next_;
    if ((c == '"' || c == '\'') && !skip_behind(std::string_view(&c, 1))) return false;
    if (c == '<') break;
  }
  return fail("an unterminated tag"), false;
}

XmlReader::Event XmlReader::take_tag() {
  const bool is_end = text_.substr(next_).starts_with("</");
  next_ += is_end ? 2 : 1;
  const std::size_t begin = next_;
  while (next_ < text_.size() && is_name(text_[next_])) ++next_;
  name_ = text_.substr(begin, next_ - begin);
  if (name_.empty()) return fail("a tag without a name");
  bool is_empty = false;
  if (is_end) {
    while (next_ < text_.size() && kSpace.contains(text_[next_])) ++next_;
    if (next_ == text_.size() || text_[next_] != '>') return fail("an unterminated tag");
    ++next_;
    if (open_.empty() || open_.back() != name_) return fail("an end tag that does not match the open element");
    open_.pop_back();
    return Event::kEnd;
  }
  if (!skip_attributes(is_empty)) return Event::kError;
  if (open_.empty() && std::exchange(has_root_, true)) return fail("a second root element");
  if (open_.size() == kMostDepth) return fail("too many nested elements");
  open_.push_back(name_);
  ends_at_once_ = is_empty;
  return Event::kBegin;
}

// Parses a reference, after the '&'.
bool XmlReader::add_reference() {
  const std::size_t end = text_.find(';', next_);
  const std::string_view name = text_.substr(next_, end == text_.npos ? 0 : end - next_);
  for (const Reference& known : kReferences)
    if (name == known.name) {
      content_ += known.value;
      next_ = end + 1;
      return true;
    }
  const bool is_hex = name.starts_with("#x");
  const std::string_view digits = name.substr(name.empty() ? 0 : is_hex ? 2 : 1);
  std::uint32_t code = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
  const bool is_number = name.starts_with('#') && !digits.empty() && error == std::errc() &&
                         stop == digits.data() + digits.size() && code > 0 && code < 0x110000 &&
                         (code < 0xd800 || code > 0xdfff);
  if (!is_number) return fail("an unknown reference"), false;
  text::append_utf8(code, content_);
  next_ = end + 1;
  return true;
}

// Returns kDone for white space.
XmlReader::Event XmlReader::take_text() {
  content_.clear();
  while (next_ < text_.size()) {
    const std::string_view rest = text_.substr(next_);
    if (rest.starts_with("<![CDATA[")) {
      const std::size_t begin = next_ + 9;
      if (!skip_behind("]]>")) return Event::kError;
      content_ += text_.substr(begin, next_ - 3 - begin);
    } else if (rest.front() == '<') {
      break;
    } else if (rest.front() == '&') {
      ++next_;
      if (!add_reference()) return Event::kError;
    } else {
      content_ += rest.front();
      ++next_;
    }
  }
  const bool is_space = content_.find_first_not_of(kSpace) == std::string::npos ||
                        (open_.empty() && content_.find_first_not_of(" \t\r\n\xef\xbb\xbf") == std::string::npos);
  if (is_space) return Event::kDone;
  return open_.empty() ? fail("text outside the root element") : Event::kText;
}

}  // namespace feedline::format
