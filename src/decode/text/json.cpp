// SPDX-License-Identifier: Apache-2.0
#include "decode/text/json.h"

#include <string_view>

#include "base/nested_mark.h"
#include "text/json_reader.h"
#include "text/utf8.h"

namespace feedline::decode {
namespace {

constexpr text::JsonReader::Options kPython{
    .max_levels = 500,
    .max_digits = 4300,  // sys.int_info.default_max_str_digits
    .unpaired_surrogates = true,
    .stage = "decode",
};

}  // namespace

Result<void> check_json(std::span<const std::byte> text) {
  if (base::has_nested_mark(text)) return {};
  FEEDLINE_CHECK_OK(text::check_utf8(text));
  text::JsonReader json({reinterpret_cast<const char*>(text.data()), text.size()}, kPython);
  if (json.skip() && json.finish()) return {};
  return data_error(json.error()->what, "decode");
}

}  // namespace feedline::decode
