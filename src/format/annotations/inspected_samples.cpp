// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/inspected_samples.h"

#include <algorithm>
#include <utility>

namespace feedline::format {

void inspect_samples(const RecordFormat& format, std::span<const std::string> keys,
                     const std::function<std::uint64_t(std::uint64_t index, const memory::Record&)>& image_bytes,
                     Inspection& inspection, Findings& findings) {
  inspection.format = format.name();
  inspection.samples = format.size();
  for (const FieldDescription& field : format.fields()) inspection.fields.push_back(field.name);
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  bool is_first = true;
  for (std::uint64_t i = 0; i < format.size(); ++i) {
    if (const auto done = format.read(i, record); !done) {
      const Error& error = done.error();
      const bool is_data = error.code == ErrorCode::kData;
      findings.add({is_data ? "bad_annotation" : "unreadable_file",
                    Severity::kError,
                    error.where.shard,
                    keys[i],
                    {},
                    is_data ? error.what : error.message()});
      continue;
    }
    const std::uint64_t bytes = image_bytes(i, record);
    inspection.bytes += record.bytes_read;
    inspection.smallest_bytes = std::exchange(is_first, false) ? bytes : std::min(inspection.smallest_bytes, bytes);
    inspection.largest_bytes = std::max(inspection.largest_bytes, bytes);
  }
}

}  // namespace feedline::format
