// SPDX-License-Identifier: Apache-2.0
#include "format/table/json_object.h"

#include <cstdint>
#include <optional>

namespace feedline::format {
namespace {

constexpr int kDeepest = 64;  // lists in lists; whoever reads the value has bounds of its own

class JsonLine {
 public:
  explicit JsonLine(std::string_view text) : text_(text) {}

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  bool is_at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool take(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  // nullopt: there is none, or it is damaged.
  std::optional<std::string> take_string() {
    if (!take('"')) return {};
    std::string text;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return text;
      if (static_cast<unsigned char>(c) < 0x20) {
        --at_;
        cause_ = "a control character in a string";
        return {};
      }
      if (c != '\\')
        text += c;
      else if (const std::size_t escape = at_ - 1; !take_escape(text)) {
        at_ = escape;
        cause_ = "an invalid escape in a string";
        return {};
      }
    }
    cause_ = "a string without an end";
    return {};
  }
  // What is wrong at the place where reading stopped.
  std::string problem() const {
    const std::string place = " at character " + std::to_string(at_ + 1);
    if (!cause_.empty()) return std::string(cause_) + place;
    if (at_ >= text_.size()) return "the text ends within the object";
    return "an unexpected '" + std::string(text_.substr(at_, 1)) + "'" + place;
  }
  // A value of any kind, as it is written; empty: there is none, or it is damaged.
  std::string_view take_value() {
    skip_space();
    const std::size_t begin = at_;
    return skip_value(0) ? text_.substr(begin, at_ - begin) : std::string_view();
  }

 private:
  std::optional<std::uint32_t> take_four_digits() {
    if (text_.size() - at_ < 4) return {};
    std::uint32_t number = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return {};
      number = number << 4 | static_cast<std::uint32_t>(digit);
    }
    return number;
  }

  static void add_utf8(std::uint32_t code, std::string& text) {
    const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) return add(0xc0 | code >> 6), add(0x80 | (code & 0x3f));
    if (code < 0x10000) return add(0xe0 | code >> 12), add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
    add(0xf0 | code >> 18), add(0x80 | (code >> 12 & 0x3f)), add(0x80 | (code >> 6 & 0x3f)), add(0x80 | (code & 0x3f));
  }

  bool take_escape(std::string& text) {
    if (at_ >= text_.size()) return false;
    const char c = text_[at_++];
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t place = kNames.find(c); place != kNames.npos) return text += kMeanings[place], true;
    if (c != 'u') return false;
    auto code = take_four_digits();
    if (!code) return false;
    if (*code >= 0xd800 && *code < 0xdc00) {  // half of a character, whose other half follows
      if (!text_.substr(at_).starts_with("\\u")) return false;
      at_ += 2;
      const auto low = take_four_digits();
      if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
      code = 0x10000 + ((*code - 0xd800) << 10 | (*low - 0xdc00));
    } else if (*code >= 0xdc00 && *code < 0xe000) {
      return false;
    }
    return add_utf8(*code, text), true;
  }

  bool skip_digits() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > begin;
  }
  // Like Python's json: also NaN and Infinity.
  bool skip_number() {
    for (const std::string_view constant : {"NaN", "Infinity", "-Infinity"})
      if (text_.substr(at_).starts_with(constant)) return at_ += constant.size(), true;
    const auto take_here = [this](std::string_view any) {
      return at_ < text_.size() && any.contains(text_[at_]) && (++at_, true);
    };
    take_here("-");
    if (!take_here("0") && !skip_digits()) return false;
    if (take_here(".") && !skip_digits()) return false;
    if (!take_here("eE")) return true;
    take_here("+-");
    return skip_digits();
  }
  bool skip_word() {
    for (const std::string_view word : {"true", "false", "null"})
      if (text_.substr(at_).starts_with(word)) return at_ += word.size(), true;
    return skip_number();
  }

  bool skip_value(int depth) {
    if (depth > kDeepest) {
      cause_ = "lists or objects nested more than 64 deep";
      return false;
    }
    const char first = peek();
    if (first == '"') return take_string().has_value();
    if (first != '[' && first != '{') return skip_word();
    const char end = first == '[' ? ']' : '}';
    take(first);
    if (take(end)) return true;
    do {
      if (first == '{' && (!take_key() || !take(':'))) return false;
      skip_space();
      if (!skip_value(depth + 1)) return false;
    } while (take(','));
    return take(end);
  }
  bool take_key() { return take_string().has_value(); }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string_view cause_;  // of the failure, if the character at at_ does not show it
};

Cell cell_of(std::string_view value) {
  if (value == "null") return {};
  if (value == "true" || value == "false" || value.front() == '[' || value.front() == '{')
    return {CellKind::kJson, std::string(value)};
  return {CellKind::kPlain, std::string(value)};
}

}  // namespace

std::expected<JsonObject, std::string> parse_json_object(std::string_view text) {
  JsonLine line(text);
  const auto damaged = [&] { return std::unexpected("is not a whole JSON object: " + line.problem()); };
  JsonObject members;
  if (!line.take('{')) return damaged();
  if (!line.take('}')) {
    do {
      auto name = line.take_string();
      if (!name || !line.take(':')) return damaged();
      if (line.peek() == '"') {
        auto value = line.take_string();
        if (!value) return damaged();
        members.emplace_back(std::move(*name), Cell{CellKind::kText, std::move(*value)});
        continue;
      }
      const std::string_view value = line.take_value();
      if (value.empty()) return damaged();
      members.emplace_back(std::move(*name), cell_of(value));
    } while (line.take(','));
    if (!line.take('}')) return damaged();
  }
  if (!line.is_at_end()) return damaged();
  return members;
}

}  // namespace feedline::format
