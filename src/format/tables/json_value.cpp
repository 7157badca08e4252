// SPDX-License-Identifier: Apache-2.0
#include "format/tables/json_value.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace feedline::format {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostValues = 1'000'000;

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { take("\xef\xbb\xbf"); }  // a byte-order mark

  bool document(JsonValue& value) { return this->value(value, 0) && (skip(), rest_.empty()); }

 private:
  void skip() {
    const std::size_t end = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end);
  }
  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool value(JsonValue& out, int depth) {
    if (depth > kDeepest || ++values_ > kMostValues) return false;
    skip();
    if (rest_.starts_with('"')) return out.kind = JsonValue::Kind::kText, text(out.text);
    if (take("{")) return out.kind = JsonValue::Kind::kObject, members(out, depth);
    if (take("[")) return out.kind = JsonValue::Kind::kArray, items(out, depth);
    if (take("null")) return true;
    for (const std::string_view word : {"true", "false"})
      if (take(word)) return out.kind = JsonValue::Kind::kBool, out.text = word, true;
    const std::size_t end = std::min(rest_.find_first_not_of("+-.eE0123456789NaInfity"), rest_.size());
    out.kind = JsonValue::Kind::kNumber;
    out.text = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return end > 0;
  }

  bool members(JsonValue& out, int depth) {
    skip();
    if (take("}")) return true;
    while (true) {
      auto& [name, value] = out.members.emplace_back(std::string(), JsonValue{});
      skip();
      if (!text(name)) return false;
      skip();
      if (!take(":") || !this->value(value, depth + 1)) return false;
      skip();
      if (take("}")) return true;
      if (!take(",")) return false;
    }
  }

  bool items(JsonValue& out, int depth) {
    skip();
    if (take("]")) return true;
    while (true) {
      if (!value(out.items.emplace_back(), depth + 1)) return false;
      skip();
      if (take("]")) return true;
      if (!take(",")) return false;
    }
  }

  std::optional<unsigned> code_unit() {
    unsigned unit = 0;
    if (rest_.size() < 4) return {};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, unit, 16);
    if (error != std::errc() || end != rest_.data() + 4) return {};
    rest_.remove_prefix(4);
    return unit;
  }

  // Behind "\u"; a pair of surrogates is one character.
  bool escaped(std::string& out) {
    auto point = code_unit();
    if (!point) return false;
    if (*point >= 0xD800 && *point < 0xDC00 && take("\\u")) {
      const auto low = code_unit();
      if (!low || *low < 0xDC00 || *low > 0xDFFF) return false;
      point = 0x10000 + ((*point - 0xD800) << 10) + (*low - 0xDC00);
    }
    const unsigned code = *point;
    const auto add = [&out](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) return add(code), true;
    if (code < 0x800) return add(0xC0 | code >> 6), add(0x80 | (code & 0x3F)), true;
    if (code >= 0x10000) {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    } else {
      add(0xE0 | code >> 12);
    }
    return add(0x80 | (code >> 6 & 0x3F)), add(0x80 | (code & 0x3F)), true;
  }

  bool text(std::string& out) {
    if (!take("\"")) return false;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (rest_.empty()) return false;
      const char kind = rest_.front();
      rest_.remove_prefix(1);
      constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
      if (const std::size_t at = kNames.find(kind); at != kNames.npos) {
        out += kMeant[at];
      } else if (kind != 'u' || !escaped(out)) {
        return false;
      }
    }
    return false;
  }

  std::string_view rest_;
  std::size_t values_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member)
    if (member->first == name) return &member->second;
  return nullptr;
}

std::optional<JsonValue> parse_json(std::string_view text) {
  JsonValue value;
  if (!Parser(text).document(value)) return {};
  return value;
}

}  // namespace feedline::format
