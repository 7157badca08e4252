// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_entry.h"

#include "format/annotations/coco/coco_format.h"
#include "format/sources/sample_name.h"
#include "format/sources/source_list.h"
#include "format/text_tables/table_source.h"

namespace feedline::format {
namespace {

// Detects a COCO file by its name and, if it is local, by its first character. Sends no request.
Result<bool> is_coco(const std::string& source, const storage::Storage& storage) {
  if (!to_lower(source.substr(0, source.find('?'))).ends_with(".json")) return false;
  if (storage.is_remote()) return !is_list(source);
  const auto reader = storage.open(source, storage::Access::kRead);
  if (!reader) return false;  // opening it reports the error
  char start[64] = {};
  const auto got = (*reader)->read_at(0, std::as_writable_bytes(std::span(start)));
  const std::string_view text(start, got.value_or(0));
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != text.npos && text[first] == '{' && !is_json_table(storage, source);
}

}  // namespace

const FormatEntry& coco_entry() {
  static constexpr FormatEntry kEntry{"coco", is_coco, CocoFormat::open, CocoFormat::inspect, true};
  return kEntry;
}

}  // namespace feedline::format
