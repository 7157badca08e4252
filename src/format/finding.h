// SPDX-License-Identifier: Apache-2.0
#pragma once

// Findings of a scan of a source. `inspect` reports all of them; open() returns the first one with severity kError as
// its error, so that both always agree on which data is damaged.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"

namespace feedline::format {

enum class Severity : std::uint8_t {
  kNote,
  kWarning,  // a reader drops or merges samples
  kError,    // reading fails
};

struct Finding {
  std::string_view code;  // a stable code; a string literal
  Severity severity = Severity::kError;
  std::string shard;
  std::string key;
  std::optional<std::uint64_t> offset;  // offset in the shard
  std::string text;                     // one sentence: the problem and its remedy
};

// Returns the finding that a column of `source` was not opened.
Finding to_finding(const UnopenedColumn& column, const std::string& source);
// Returns a kData error with the finding's location.
Error to_error(const Finding& finding);

// Stores the first few findings of each code and counts the rest: a shard with a million odd members must not exhaust
// memory.
class Findings {
 public:
  void add(Finding finding);
  void add(Findings findings);
  const Finding* first_error() const;
  const std::vector<Finding>& kept() const { return kept_; }
  std::uint64_t count(std::string_view code) const;
  // Errors precede warnings, which precede notes; otherwise in order of detection. Then one line for each code with
  // findings that are not shown.
  std::vector<InspectionFinding> to_inspection() const;

 private:
  static constexpr std::uint64_t kKeptPerCode = 20;

  std::vector<Finding> kept_;
  std::map<std::string_view, std::uint64_t> counts_;
};

}  // namespace feedline::format
