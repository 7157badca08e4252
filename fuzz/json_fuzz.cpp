// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON: accepted or rejected, regardless of the surrounding bytes. Accepted text is UTF-8.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "decode/text/json.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using feedline::decode::check_json;
  // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
  std::vector<std::byte> text(size);
  text.shrink_to_fit();
  std::ranges::copy(std::as_bytes(std::span(data, size)), text.begin());
  const bool is_json = check_json(text).has_value();
  FEEDLINE_CHECK(!is_json || feedline::text::check_utf8(text));
  constexpr std::array kByteOrderMark{std::byte{0xef}, std::byte{0xbb}, std::byte{0xbf}};  // only at the beginning
  const bool has_mark =
      text.size() >= kByteOrderMark.size() && std::ranges::equal(kByteOrderMark, std::span(text).first<3>());
  std::vector<std::byte> list{std::byte{'['}};
  list.insert(list.end(), text.begin() + (has_mark ? std::ssize(kByteOrderMark) : 0), text.end());
  list.push_back(std::byte{']'});
  FEEDLINE_CHECK(!is_json || check_json(list) ||
                 size > 500);  // also valid in a list, unless this exceeds the maximum depth
  text.push_back(std::byte{'x'});
  FEEDLINE_CHECK(!is_json || !check_json(text));
  return 0;
}
