// SPDX-License-Identifier: Apache-2.0
#include "format/json_reader.h"

#include <charconv>

namespace feedline::format {
namespace {

constexpr std::string_view kConstants[] = {"NaN", "Infinity", "-Infinity"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void append_utf8(std::uint32_t point, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | point >> 18);
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

}  // namespace

bool JsonReader::take(char wanted) {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  if (damaged_ || at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

JsonReader::Type JsonReader::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  if (damaged_ || at_ == text_.size()) return Type::kNothing;
  switch (const char c = text_[at_]) {
    case '{':
      return Type::kObject;
    case '[':
      return Type::kArray;
    case '"':
      return Type::kString;
    case 't':
    case 'f':
      return Type::kBool;
    case 'n':
      return Type::kNull;
    default:
      return c == '-' || c == 'N' || c == 'I' || (c >= '0' && c <= '9') ? Type::kNumber : Type::kNothing;
  }
}

bool JsonReader::at_end() { return !damaged_ && peek() == Type::kNothing && at_ == text_.size(); }

bool JsonReader::literal(std::string_view word) {
  if (peek() == Type::kNothing || !text_.substr(at_).starts_with(word)) return fail();
  at_ += word.size();
  return true;
}

std::optional<bool> JsonReader::boolean() {
  const bool value = peek() == Type::kBool && text_[at_] == 't';
  if (!literal(value ? "true" : "false")) return {};
  return value;
}

bool JsonReader::null() { return literal("null"); }

std::optional<std::uint32_t> JsonReader::hex4() {
  if (text_.size() - at_ < 4) return {};
  std::uint32_t value = 0;
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, begin + 4, value, 16);
  if (error != std::errc() || end != begin + 4) return {};
  at_ += 4;
  return value;
}

// Behind a backslash.
bool JsonReader::escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  if (at_ == text_.size()) return fail();
  const char letter = text_[at_++];
  if (letter != 'u') {
    const std::size_t which = kLetters.find(letter);
    if (which == kLetters.npos) return fail();
    out += kMeant[which];
    return true;
  }
  auto point = hex4();
  if (!point || (*point >= 0xdc00 && *point < 0xe000)) return fail();
  if (*point >= 0xd800 && *point < 0xdc00) {  // the first half of a pair
    if (!text_.substr(at_).starts_with("\\u")) return fail();
    at_ += 2;
    const auto low = hex4();
    if (!low || *low < 0xdc00 || *low >= 0xe000) return fail();
    point = 0x10000 + ((*point - 0xd800) << 10) + (*low - 0xdc00);
  }
  append_utf8(*point, out);
  return true;
}

std::optional<std::string> JsonReader::string() {
  if (!take('"')) return fail(), std::nullopt;
  std::string out;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return out;
    if (static_cast<unsigned char>(c) < 0x20) break;
    if (c != '\\')
      out += c;
    else if (!escape(out))
      return {};
  }
  return fail(), std::nullopt;
}

std::optional<std::string_view> JsonReader::raw_string() {
  if (!take('"')) return fail(), std::nullopt;
  const std::size_t begin = at_;
  for (bool escaped = false; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) < 0x20) break;
    if (c == '"' && !escaped) return text_.substr(begin, at_++ - begin);
    escaped = c == '\\' && !escaped;
  }
  return fail(), std::nullopt;
}

std::optional<std::string_view> JsonReader::real() {
  if (peek() != Type::kNumber) return fail(), std::nullopt;
  return skip();
}

std::optional<std::int64_t> JsonReader::integer() {
  if (peek() != Type::kNumber) return fail(), std::nullopt;
  std::int64_t value = 0;
  const char *const begin = text_.data() + at_, *const end = text_.data() + text_.size();
  const auto [behind, error] = std::from_chars(begin, end, value);
  const bool goes_on = behind != end && (*behind == '.' || *behind == 'e' || *behind == 'E');
  if (error != std::errc() || goes_on) return fail(), std::nullopt;
  at_ += static_cast<std::size_t>(behind - begin);
  return value;
}

bool JsonReader::skip_number() {
  for (const std::string_view constant : kConstants)
    if (text_.substr(at_).starts_with(constant)) {
      at_ += constant.size();
      return true;
    }
  if (text_[at_] == 'N' || text_[at_] == 'I') return fail();
  const std::size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
  at_ = end == text_.npos ? text_.size() : end;
  return true;
}

bool JsonReader::skip_value() {
  switch (peek()) {
    case Type::kObject:
      return object([this](const std::string&) { return skip_value(); });
    case Type::kArray:
      return array([this] { return skip_value(); });
    case Type::kString:
      return string().has_value();
    case Type::kNumber:
      return skip_number();
    case Type::kBool:
      return boolean().has_value();
    case Type::kNull:
      return null();
    case Type::kNothing:
      break;
  }
  return fail();
}

std::optional<std::string_view> JsonReader::skip() {
  if (peek() == Type::kNothing) return fail(), std::nullopt;
  const std::size_t begin = at_;
  if (!skip_value()) return {};
  return text_.substr(begin, at_ - begin);
}

}  // namespace feedline::format
