// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/listing.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

#include "storage/http/response_head.h"
#include "text/utf8.h"

namespace feedline::storage {
namespace {

std::unexpected<Error> no_listing(const std::string& why) {
  return storage_error("the answer to a listing is none: " + why, 0);
}

// Decodes "&amp;" and the like; invalid entities are unchanged.
std::string with_entities_read(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
      {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};
  constexpr std::size_t kLongest = 10;
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = text[i] == '&' ? text.substr(i, kLongest).find(';') : text.npos;
    if (end == text.npos) {
      result += text[i];
      continue;
    }
    std::string_view name = text.substr(i + 1, end - 1);
    bool is_known = false;
    for (const auto& [known, character] : kNamed)
      if (name == known) result += character, is_known = true;
    if (!is_known && name.starts_with('#')) {
      const int base = name.starts_with("#x") ? 16 : 10;
      name.remove_prefix(base == 16 ? 2 : 1);
      std::uint32_t code = 0;
      const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), code, base);
      is_known = !name.empty() && error == std::errc() && stop == name.data() + name.size() && code < 0x110000;
      if (is_known) text::append_utf8(code, result);
    }
    if (is_known)
      i += end;
    else
      result += text[i];
  }
  return result;
}

// The content of the first element of this name from `from` on, which moves past it. The elements used in S3's
// responses never contain others of the same name.
std::optional<std::string_view> inside(std::string_view xml, std::string_view name, std::size_t& from) {
  const std::string open = "<" + std::string(name), close = "</" + std::string(name) + ">";
  for (std::size_t begin = xml.find(open, from); begin != xml.npos; begin = xml.find(open, begin + 1)) {
    const std::size_t behind = begin + open.size();
    if (behind >= xml.size() || (xml[behind] != '>' && xml[behind] != ' ' && xml[behind] != '/')) continue;
    const std::size_t start = xml.find('>', behind);
    if (start == xml.npos) return {};
    if (xml[start - 1] == '/') {
      from = start + 1;
      return std::string_view();
    }
    const std::size_t end = xml.find(close, start);
    if (end == xml.npos) return {};
    from = end + close.size();
    return xml.substr(start + 1, end - start - 1);
  }
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string url_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low >= 0) {
      result += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

}  // namespace

std::string xml_text(std::string_view xml, std::string_view name) {
  std::size_t from = 0;
  const auto text = inside(xml, name, from);
  return text ? with_entities_read(*text) : std::string();
}

Result<S3Listing> parse_listing(std::string_view xml) {
  std::size_t from = 0;
  const auto all = inside(xml, "ListBucketResult", from);
  if (!all) return no_listing("no whole ListBucketResult");
  const bool is_encoded = xml_text(*all, "EncodingType") == "url";
  const auto key_of = [&](std::string_view element, std::string_view name) {
    const std::string text = xml_text(element, name);
    return is_encoded ? url_decoded(text) : text;
  };
  S3Listing listing;
  std::size_t at = 0;
  while (const auto element = inside(*all, "Contents", at)) {
    const auto bytes = parse_size(xml_text(*element, "Size"));
    if (!bytes) return no_listing("an object without a size");
    listing.objects.push_back({key_of(*element, "Key"), *bytes, xml_text(*element, "ETag")});
  }
  at = 0;
  while (const auto element = inside(*all, "CommonPrefixes", at))
    listing.prefixes.push_back(key_of(*element, "Prefix"));
  if (xml_text(*all, "IsTruncated") != "true") return listing;
  listing.next = xml_text(*all, "NextContinuationToken");
  if (listing.next.empty()) return no_listing("it goes on, and does not say where");
  return listing;
}

Result<S3Uploads> parse_uploads(std::string_view xml) {
  std::size_t from = 0;
  const auto all = inside(xml, "ListMultipartUploadsResult", from);
  if (!all) return no_listing("no whole ListMultipartUploadsResult");
  const bool is_encoded = xml_text(*all, "EncodingType") == "url";
  const auto key_of = [&](std::string_view element, std::string_view name) {
    const std::string text = xml_text(element, name);
    return is_encoded ? url_decoded(text) : text;
  };
  S3Uploads found;
  std::size_t at = 0;
  while (const auto element = inside(*all, "Upload", at))
    found.uploads.push_back({key_of(*element, "Key"), xml_text(*element, "UploadId")});
  if (xml_text(*all, "IsTruncated") != "true") return found;
  found.next_key = key_of(*all, "NextKeyMarker");
  found.next_id = xml_text(*all, "NextUploadIdMarker");
  if (found.next_key.empty()) return no_listing("it goes on, and does not say where");
  return found;
}

}  // namespace feedline::storage
