// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yaml_subset.h"

#include <algorithm>
#include <optional>

namespace feedline::format {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

// Without a comment: a '#' at its beginning or behind a space, outside of quotes.
std::string_view without_comment(std::string_view line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if ((c == '"' || c == '\'') && (i == 0 || std::string_view(" [,{:-").contains(line[i - 1]))) {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

// A text with or without quotes. nullopt: it is something else, or quotes that do not match.
std::optional<std::string> scalar(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || text == "~" || text == "null") return std::string();
  const char first = text.front();
  if (first == '"' || first == '\'') {
    if (text.size() < 2 || text.back() != first) return {};
    text = text.substr(1, text.size() - 2);
    if (text.contains(first) || (first == '"' && text.contains('\\'))) return {};
    return std::string(text);
  }
  if (std::string_view("[]{}&*!|>%@`,").contains(first)) return {};
  return std::string(text);
}

// The parts between commas outside of quotes. nullopt: there are brackets within.
std::optional<std::vector<std::string_view>> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  char quote = '\0';
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (i < text.size() && quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      if (trimmed(text.substr(begin, i - begin)).empty()) quote = c;
    } else if (std::string_view("[]{}").contains(c)) {
      return {};
    } else if (c == ',') {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (!parts.empty() && parts.back().empty()) parts.pop_back();  // "[a, b,]"
  return parts;
}

// Where a key ends: a colon with a space or nothing behind it, outside of quotes.
std::size_t colon_of(std::string_view line) {
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote != '\0') {
      if (line[i] == quote) quote = '\0';
    } else if (i == 0 && (line[i] == '"' || line[i] == '\'')) {
      quote = line[i];
    } else if (line[i] == ':' && (i + 1 == line.size() || line[i + 1] == ' ' || line[i + 1] == '\t')) {
      return i;
    }
  }
  return line.npos;
}

class Reading {
 public:
  explicit Reading(std::string_view text) : text_(text) {}

  Result<std::map<std::string, YamlValue>> read() {
    while (take_line()) {
      if (line_.empty() || line_ == "---") continue;
      if (line_ == "...") break;
      if (is_indented_ || line_.starts_with("- ") || line_ == "-") {
        FEEDLINE_CHECK_OK(add_to_last());
        continue;
      }
      const std::size_t colon = colon_of(line_);
      const auto key = colon == line_.npos ? std::nullopt : scalar(line_.substr(0, colon));
      if (open_flow_.empty() && !key) return wrong("a line that is no key");
      if (!open_flow_.empty()) {
        FEEDLINE_CHECK_OK(add_to_last());
        continue;
      }
      const auto [place, is_new] = values_.emplace(*key, YamlValue{});
      if (!is_new) return wrong("the key '" + *key + "', which came before,");
      last_ = &place->second;
      set(*last_, trimmed(line_.substr(colon + 1)));
    }
    if (!open_flow_.empty()) return wrong("brackets without an end");
    return std::move(values_);
  }

 private:
  bool take_line() {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    if (at_ == 0 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    at_ = end + 1;
    ++number_;
    is_indented_ = line.starts_with(' ') || line.starts_with('\t');
    line_ = trimmed(without_comment(line));
    return true;
  }

  std::unexpected<Error> wrong(const std::string& what) const {
    return data_error("not the YAML that was expected: " + what + " in line " + std::to_string(number_), "format");
  }
  static void refuse(YamlValue& value, std::string what) {
    value = {};
    value.kind = YamlValue::Kind::kUnread;
    value.text = std::move(what);
  }

  void set(YamlValue& value, std::string_view text) {
    if (text.empty()) return;
    if (text.front() == '[' || text.front() == '{') return set_flow(value, std::string(text));
    if (text.front() == '|' || text.front() == '>') return refuse(value, "a block of lines");
    if (text.front() == '&' || text.front() == '*') return refuse(value, "an anchor or alias");
    if (text.front() == '!') return refuse(value, "a tag");
    const auto word = scalar(text);
    if (!word) return refuse(value, "a text in quotes with escapes");
    value.kind = YamlValue::Kind::kText;
    value.text = *word;
  }

  // A list or mapping in brackets; one that goes on in the next lines is kept until it ends.
  void set_flow(YamlValue& value, std::string text) {
    const char end = text.front() == '[' ? ']' : '}';
    if (text.back() != end) {
      open_flow_ = std::move(text);
      return;
    }
    open_flow_.clear();
    const auto parts = parts_of(std::string_view(text).substr(1, text.size() - 2));
    if (!parts) return refuse(value, "brackets within brackets");
    value.kind = end == ']' ? YamlValue::Kind::kList : YamlValue::Kind::kMapping;
    for (const std::string_view part : *parts) {
      const std::size_t colon = end == ']' ? 0 : colon_of(part);
      const auto word = scalar(end == ']' ? part : part.substr(std::min(colon, part.size() - 1) + 1));
      const auto key = end == ']' ? std::string() : scalar(part.substr(0, colon));
      if (!word || !key || colon == part.npos) return refuse(value, "an entry in brackets that is no text");
      if (end == ']')
        value.list.push_back(*word);
      else
        value.map.emplace_back(*key, *word);
    }
  }

  // A line that belongs to the key before it.
  Result<void> add_to_last() {
    if (last_ == nullptr) return wrong("an indented line or a dash before any key");
    YamlValue& value = *last_;
    if (!open_flow_.empty()) {
      set_flow(value, open_flow_ + " " + std::string(line_));
      return {};
    }
    if (value.kind == YamlValue::Kind::kUnread) return {};
    if (line_.starts_with('-')) {
      const auto word = scalar(line_.substr(1));
      if (value.kind != YamlValue::Kind::kNothing && value.kind != YamlValue::Kind::kList)
        return wrong("a dash where there is no list");
      if (!word || colon_of(trimmed(line_.substr(1))) != line_.npos) {
        refuse(value, "a list of more than texts");
        return {};
      }
      value.kind = YamlValue::Kind::kList;
      value.list.push_back(*word);
      return {};
    }
    const std::size_t colon = colon_of(line_);
    const auto key = colon == line_.npos ? std::nullopt : scalar(line_.substr(0, colon));
    const auto word = colon == line_.npos ? std::nullopt : scalar(line_.substr(colon + 1));
    const bool fits = value.kind == YamlValue::Kind::kNothing || value.kind == YamlValue::Kind::kMapping;
    if (!key || !word || !fits) {
      refuse(value, "lines that are neither a list nor a mapping of texts");
      return {};
    }
    value.kind = YamlValue::Kind::kMapping;
    value.map.emplace_back(*key, *word);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0, number_ = 0;
  bool is_indented_ = false;
  std::string_view line_;
  std::string open_flow_;
  YamlValue* last_ = nullptr;
  std::map<std::string, YamlValue> values_;
};

}  // namespace

Result<std::map<std::string, YamlValue>> read_yaml(std::string_view text) { return Reading(text).read(); }

}  // namespace feedline::format
